import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Attacks, shown } from "./support/attacks.ts";
import { type Envelope, type GullibleMailServer, startGullibleMailServer } from "./support/gullible-mail-server.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * Hostile text that a tenant, or a tenant's own users, could write into an e-mail: headers, recipients, a second
 * message. Every mail goes through the whole program to a mail server that believes all input.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("mail injection");

let target: Target;
let server: GullibleMailServer;
/** The names of the headers that a harmless message has. */
let usualHeaders: readonly string[] = [];
let sent = 0;

beforeAll(async () => {
  server = await startGullibleMailServer();
  target = await startTarget({ SMTP_URL: server.url, SPAM_FILTER: "off" });
  const template = { channel: "email", subject: "For {{.x}}", html: "<p>For {{.x}}</p>", text: "For {{.x}}" };
  await target.operator("PUT", "/tenants/mallory/templates/of-x", template);
  const harmless = await deliver({ subject: "Hello", to_name: "Ann", html: "<p>Hello</p>" });
  usualHeaders = parseHeaders(harmless.envelope).map(([name]) => name);
});

afterAll(async () => {
  await target?.stop();
  await server?.stop();
});

interface Delivered {
  readonly status: number;
  readonly error: string;
  readonly to: string;
  /** The envelopes that reached the mail server with it. */
  readonly envelopes: readonly Envelope[];
  readonly envelope: Envelope | undefined;
}

/** Sends to a fresh address, unless one is given, and waits for the job's end. */
async function deliver(message: Readonly<Record<string, unknown>>): Promise<Delivered> {
  const [before, oddBefore] = [server.envelopes.length, server.odd.length];
  const to = `reader-${(sent += 1)}@example.com`;
  const accepted = await target.call(target.attacker, "POST", "/v1/send/email", { to_address: to, ...message });
  const { status } = accepted;
  if (status === 202) await target.ended(target.attacker, accepted);
  expect(server.odd.slice(oddBefore)).toEqual([]);
  const envelopes = server.envelopes.slice(before);
  return { status, error: String(accepted.body.error), to, envelopes, envelope: envelopes[0] };
}

function parseHeaders(envelope: Envelope | undefined): readonly (readonly [name: string, value: string])[] {
  const end = /(?:\r\n|\n|\r)(?:\r\n|\n|\r)/.exec(envelope?.data ?? "")?.index ?? 0;
  const unfolded = (envelope?.data ?? "").slice(0, end).replace(/(?:\r\n|\n|\r)[ \t]+/g, " ");
  return unfolded.split(/\r\n|\n|\r/).map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
}

/** Returns the difference from one usual message to one recipient, or null. */
function findOddity({ status, error, to, envelopes, envelope }: Delivered, recipient = to): string | null {
  if (status === 400 || status === 422) return envelopes.length === 0 ? null : "refused, and sent all the same";
  if (status !== 202) return `answered ${status} ${error}`;
  if (envelope === undefined) return null;
  if (envelopes.length !== 1) return `${envelopes.length} messages came`;
  const expected = `<${recipient}>`;
  if (envelope.recipients.length !== 1 || envelope.recipients[0]?.startsWith(expected) !== true) {
    return `it went to ${envelope.recipients.join(", ")} instead of ${expected}`;
  }
  if (!/^<[^<>\s]+>(?: BODY=\w+| SIZE=\d+| SMTPUTF8)*$/.test(envelope.from)) return `it came from ${envelope.from}`;
  if (/[^\r]\n|\r[^\n]|\0/.test(envelope.data)) return "it holds a bare line end or a NUL";
  const names = parseHeaders(envelope).map(([name]) => name);
  const odd = names.find((name, at) => !usualHeaders.includes(name) || names.indexOf(name) !== at);
  return odd === undefined ? null : `it has a header ${odd}`;
}

const BREAKS = ["\r\n", "\n", "\r", "\n\r", "\r\r\n", "\u0000\r\n", "\u2028", "\u2029", "\u0085", "\u000b", "\u000c"];
const ESCAPED_BREAKS = ["%0d%0a", "%0A", "\\r\\n", "&#13;&#10;", "=0D=0A", "=?utf-8?Q?=0D=0A?=", "=?utf-8?B?DQo=?="];
const INSERTS = [
  "Bcc: evil@example.com",
  " Bcc: evil@example.com",
  "Content-Type: text/plain\r\n\r\nInstead",
  "\r\nA body of its own",
  "X-Evil: 1\nReply-To: evil@example.com",
  ".\r\nMAIL FROM:<evil@example.com>\r\nRCPT TO:<victim@example.com>\r\nDATA\r\nSubject: smuggled\r\n\r\n.\r\n",
];
const INJECTIONS = [...BREAKS, ...ESCAPED_BREAKS].flatMap((end) => INSERTS.map((insert) => `Hello${end}${insert}`));

const FIELDS: readonly (readonly [name: string, message: (text: string) => Readonly<Record<string, unknown>>])[] = [
  ["subject", (text) => ({ subject: text, html: "<p>Hello</p>" })],
  ["to_name", (text) => ({ to_name: text, subject: "Hello", html: "<p>Hello</p>" })],
  ["to_address", (text) => ({ to_address: `${text}@example.com`, subject: "Hello", html: "<p>Hello</p>" })],
  ["a variable of the template", (text) => ({ template_id: "of-x", data: { x: text } })],
  ["a variable of the given subject", (text) => ({ subject: "For {{.x}}", html: "<p>{{.x}}</p>", data: { x: text } })],
];

test.each(FIELDS)("nothing written into %s adds a header, a recipient or a message", async (field, message) => {
  await attacks.runEach(INJECTIONS, async (text) => {
    const delivered = await deliver(message(text));
    return findOddity(
      delivered,
      field === "to_address" ? (delivered.envelope?.recipients[0] ?? "").slice(1, -1) : delivered.to,
    );
  });
});

test("a message is never two, whatever stands for the end of one in its texts", async () => {
  const ends = ["\r\n", "\n", "\r"].flatMap((before) =>
    ["\r\n", "\n", "\r"].flatMap((after) => ["", " ", "\0", "."].map((odd) => `${before}${odd}.${after}`)),
  );
  const second =
    "MAIL FROM:<evil@example.com>\r\nRCPT TO:<victim@example.com>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n.\r\n";
  const places: readonly (readonly [string, (text: string) => Readonly<Record<string, unknown>>])[] = [
    ["HTML", (text) => ({ subject: "Hello", html: `<p>Hello</p>${text}` })],
    ["preformatted HTML", (text) => ({ subject: "Hello", html: `<pre>Hello${text}</pre>` })],
    ["a variable", (text) => ({ template_id: "of-x", data: { x: text } })],
    ["a long line", (text) => ({ subject: "Hello", html: `<p>${"x".repeat(75)}${text}</p>` })],
  ];
  const table = places.flatMap(([place, message]) => ends.map((end) => ({ place, message, end })));
  await attacks.run(
    table,
    ({ place, end }) => `${shown(end)} in ${place}`,
    async ({ message, end }) => findOddity(await deliver(message(`${end}${second}`))),
  );
});

test("an address is one recipient or none", async () => {
  const addresses = [
    "a@example.com,b@example.com",
    "a@example.com, b@example.com",
    "a@example.com;b@example.com",
    "a@example.com b@example.com",
    "a@example.com>,<b@example.com",
    "a@example.com> RCPT TO:<b@example.com",
    "<a@example.com>",
    "Ann <a@example.com>",
    "Ann <a@example.com>, Bob <b@example.com>",
    '"a\\" <b@example.com>"@example.com',
    '"a, b@example.com"@example.com',
    '"a@example.com,b@example.com"@example.com',
    '"<b@example.com>"@example.com',
    '"a b"@example.com',
    '"a\\"b"@example.com',
    '""@example.com',
    '"a"@example.com',
    "a@example.com (comment)",
    "a(comment)@example.com",
    "group: a@example.com, b@example.com;",
    "undisclosed-recipients:;",
    "<>",
    "@",
    "a@",
    "@example.com",
    "@relay.example:a@example.com",
    "a%b@example.com",
    "a!b@example.com",
    "a@b@example.com",
    "a@example.com@example.org",
    "a@example.com\u0000@example.org",
    "a\u202e@example.com",
    "\u0430nn@example.com",
    "ann@ex\u0430mple.com",
    "ann@example\u3002com",
    "ann@example.com\uff0cbob@example.com",
    "ann@-example.com",
    "ann@example..com",
    ".ann@example.com",
    "ann.@example.com",
    "a..b@example.com",
    "ann@[127.0.0.1]",
    "ann@[10.0.0.1]",
    "ann@[IPv6:::1]",
    "ann@[169.254.169.254]",
    "ann@127.0.0.1",
    "ann@127.1",
    "ann@2130706433",
    "ann@0x7f000001",
    "ann@0x7f.1",
    "ann@017700000001",
    "ann@127.0.0.1.",
    "ann@localhost",
    "postmaster",
    "|/bin/sh@example.com",
    "/etc/passwd@example.com",
    "-oQ/tmp@example.com",
    `${"a".repeat(65)}@example.com`,
    `ann@${"a".repeat(64)}.com`,
    `ann@${"a.".repeat(150)}com`,
    " ann@example.com",
    "ann@example.com ",
    "ann@example.com\t",
    "=?utf-8?q?a=40example.com?=",
    "mailto:ann@example.com",
    "ann@example.com?bcc=b@example.com",
    "ann+b@example.com",
  ];
  await attacks.runEach(addresses, async (to_address) => {
    const delivered = await deliver({ to_address, subject: "Hello", html: "<p>Hello</p>" });
    // An address literal of a machine circumvents the names that mail is meant for.
    const isOfMachine = /@(?:\[|localhost$|(?:0x[\da-f]+|[\d.]+)+$)/i.test(to_address);
    if (isOfMachine && delivered.status === 202) return `taken, for ${delivered.envelope?.recipients[0]}`;
    return findOddity(delivered, onTheWire(to_address.replace(/^"([\w.+-]+)"@/, "$1@")));
  });
});

/** As SMTP carries it: the domain in its A-label form (RFC 5890), the local part in UTF-8 (RFC 6531), read as single bytes. */
function onTheWire(address: string): string {
  const at = address.lastIndexOf("@");
  const domain = URL.parse(`http://${address.slice(at + 1)}`)?.hostname ?? address.slice(at + 1);
  // oxlint-disable-next-line no-control-regex -- ASCII
  const isAscii = /^[\u0000-\u007f]*$/.test(address);
  return isAscii ? address : Buffer.from(`${address.slice(0, at)}@${domain}`).toString("latin1");
}

test("operators' texts add nothing to messages, either", async () => {
  const texts = ["\r\nBcc: evil@example.com", "\nX-Evil: 1", "\rX-Evil: 1", "\u0000", "\u0085X-Evil: 1"];
  const calls = texts.flatMap((text) => [
    {
      name: `subject ${shown(text)}`,
      path: "templates/evil",
      body: { channel: "email", subject: `Hello${text}`, html: "<p>x</p>" },
    },
    {
      name: `from_name ${shown(text)}`,
      path: "credentials/email",
      body: { from_address: "me@example.com", from_name: `Me${text}` },
    },
    { name: `from_address ${shown(text)}`, path: "credentials/email", body: { from_address: `me${text}@example.com` } },
  ]);
  await attacks.run(
    calls,
    ({ name }) => name,
    async ({ path, body }) => {
      const { status, body: answer } = await target.operator("PUT", `/tenants/mallory/${path}`, body);
      return status === 400 ? null : `answered ${status} ${JSON.stringify(answer)}`;
    },
  );
});
