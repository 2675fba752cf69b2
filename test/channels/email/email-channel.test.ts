import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { EmailChannel, type EmailChannelOptions } from "../../../src/channels/email/email-channel.ts";
import { readUnsubscribeLink } from "../../../src/channels/email/links/link-tokens.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import { type SmtpSandbox, startSmtpSandbox } from "../../../src/channels/email/sandbox/smtp-sandbox.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { DeliveryReport, SandboxMessage } from "../../../src/domain/jobs/report.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { verified } from "../../support/sending-domain.ts";
import { aTenant } from "../../support/tenants.ts";
import { emailJob, inEachStep, LINKS, linkTokens, parseHeaders, parseParts, withoutPixel } from "./email-world.ts";

const NEVER = new AbortController().signal;
const SHORT = { turnMs: 5_000, connectMs: 1_000, readyMs: 2_000, ...inEachStep(1_000), idleMs: 1_000 };
const FROM = { address: "no-reply@waybill.test", name: "Waybill" };
const LETTER: EmailPayload = { to: "ana@example.test", subject: "Hello", html: "<p>Hi</p>" };

let sandbox: SmtpSandbox;
let channel: EmailChannel;
const reports: DeliveryReport[] = [];
let nth = 0;

beforeAll(async () => {
  const onReport = (report: DeliveryReport) => reports.push(report);
  sandbox = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport });
  channel = new EmailChannel({ smtpUrl: sandbox.url, defaultFrom: FROM, ...LINKS });
});

beforeEach(() => {
  nth += 1;
});

afterAll(async () => {
  channel.close();
  await sandbox.stop();
});

/** An address that no other test sends to, and another one after each message that `arrived`. */
const someone = () => `someone-${nth}@example.test`;

const deliver = (payload: EmailPayload, tenant: Tenant = aTenant(), through = channel) =>
  through.deliver(emailJob(payload), tenant, NEVER);

/** Delivers to a new recipient and returns the one message that arrived. */
async function arrived(payload: Omit<EmailPayload, "to">, tenant?: Tenant): Promise<SandboxMessage> {
  const to = someone();
  const outcome = await deliver({ ...payload, to }, tenant);
  expect(outcome.kind).toBe("delivered");
  const [message, ...others] = sandbox.inbox.messages(to, 10);
  expect(others).toEqual([]);
  if (!message) throw new Error("nothing arrived");
  nth += 1;
  return message;
}

async function withChannel<T>(
  options: Partial<EmailChannelOptions>,
  use: (channel: EmailChannel) => Promise<T>,
): Promise<T> {
  const other = new EmailChannel({ smtpUrl: sandbox.url, defaultFrom: FROM, ...LINKS, timeouts: SHORT, ...options });
  try {
    return await use(other);
  } finally {
    other.close();
  }
}

/** A mail server that follows the test's script, line by line. */
async function withServer<T>(
  onLine: (line: string, socket: Socket) => void,
  use: (url: string) => Promise<T>,
  greeting = "220 here\r\n",
): Promise<T> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    if (greeting !== "") socket.write(greeting);
    socket.on("data", (chunk) => {
      for (const line of chunk.toString().split("\r\n").filter(Boolean)) onLine(line, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  try {
    return await use(`smtp://127.0.0.1:${typeof address === "object" ? address?.port : 0}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

describe("a message", () => {
  test("of a template has the subject, the HTML and the text with their placeholders filled", async () => {
    const template = { subject: "Order {{.n}} <{{.who}}>", html: "<p>Dear {{.who}}</p>", text: "Dear {{.who}}," };
    const tenant = aTenant({ emailTemplates: new Map([["order", template]]) });
    const message = await arrived({ template: "order", data: { n: 7, who: "A & B" } }, tenant);
    expect(message.subject).toBe("Order 7 <A & B>");
    const parts = parseParts(message.source);
    expect(withoutPixel(parts["text/html"])).toBe("<p>Dear A &amp; B</p>");
    expect(parts["text/plain"]).toBe("Dear A & B,");
  });

  test("without a text of its own gets one of its HTML", async () => {
    const html = '<h1>Hi {{.who}}</h1><p>Read <a href="{{.link}}">this</a>.</p>';
    const { source } = await arrived({ html, data: { who: "<Ana>", link: "https://x.test/?a=1&b=2" } });
    expect(parseParts(source)["text/plain"]).toBe("Hi <Ana>\r\n\r\nRead this (https://x.test/?a=1&b=2).");
  });

  test("takes the request's subject before the template's, and inline HTML before a template", async () => {
    const tenant = aTenant({ emailTemplates: new Map([["t", { subject: "old", html: "<p>old</p>", text: null }]]) });
    const message = await arrived({ template: "t", subject: "new {{.x}}", data: { x: 1 } }, tenant);
    expect(message.subject).toBe("new 1");
    const inline = await arrived({ template: "t", html: "<p>inline</p>", subject: "s" }, tenant);
    expect(inline.source).toContain("<p>inline</p>");
  });

  test("of a template that is gone fails and says which", async () => {
    const outcome = await deliver({ to: someone(), template: "gone" });
    expect(outcome).toMatchObject({ kind: "failed", error: 'the template "gone" does not exist any more' });
  });

  test("that its data would make too large fails", async () => {
    const outcome = await deliver({ to: someone(), html: "{{.x}}".repeat(2_000), data: { x: "y".repeat(10_000) } });
    expect(outcome).toMatchObject({
      kind: "failed",
      error: "the message would be larger than 512 KB once its placeholders are filled",
    });
  });

  test("shows its own unsubscribe link where it asks for it, in text and HTML, and no click leads around it", async () => {
    const body = '<a href="{{.unsubscribe_url}}">Leave</a> <a href="https://x.test/">x</a>';
    const job = { ...emailJob({ ...LETTER, to: someone(), html: body }), recipient: "ann@example.test", topic: "news" };
    await channel.deliver(job, aTenant(), NEVER);
    const [{ source = "" } = {}] = sandbox.inbox.messages(someone(), 1);
    const [, url = ""] = /<(https:[^>]+)>/.exec(new Map(parseHeaders(source)).get("List-Unsubscribe") ?? "") ?? [];
    const parts = parseParts(source);
    expect(parts["text/html"]).toContain(`<a href="${url}">Leave</a>`);
    expect(parts["text/html"]).toContain('<a href="https://send.test/t/c/');
    expect(parts["text/plain"]).toContain(`Leave (${url})`);
    expect(readUnsubscribeLink(linkTokens, url.slice("https://send.test/u/".length))).toMatchObject({
      purpose: "unsubscribe topic",
      jobId: job.jobId,
      recipient: "ann@example.test",
      topic: "news",
    });
  });

  test("of a template shows it, too, and a variable of the tenant's own with that name comes first", async () => {
    const template = { subject: "s {{.unsubscribe_url}}", html: "<p>x</p>", text: "Leave: {{ .unsubscribe_url }}" };
    const tenant = aTenant({ emailTemplates: new Map([["t", template]]) });
    const own = await arrived({ template: "t", data: { unsubscribe_url: "https://own.test/" } }, tenant);
    expect([own.subject, parseParts(own.source)["text/plain"]]).toEqual([
      "s https://own.test/",
      "Leave: https://own.test/",
    ]);
    const ours = await arrived({ template: "t" }, tenant);
    expect([ours.subject, parseParts(ours.source)["text/plain"]]).toEqual([
      "s",
      expect.stringMatching(/^Leave: https:\/\/send\.test\/u\/[\w-]+$/),
    ]);
  });

  test("that nobody can read fails", async () => {
    for (const payload of ["{", "null", "[]", '{"to":1}']) {
      const outcome = await channel.deliver(emailJob(payload), aTenant(), NEVER);
      expect(outcome.kind).toBe("failed");
    }
  });

  test("names its job in its Message-ID, the same at every attempt", async () => {
    const job = emailJob({ ...LETTER, to: someone() });
    for (const _ of [1, 2]) await channel.deliver(job, aTenant(), NEVER);
    const ids = sandbox.inbox
      .messages(someone(), 10)
      .map(({ source }) => new Map(parseHeaders(source)).get("Message-ID"));
    expect(ids).toEqual(Array(2).fill(`<${job.jobId}.acme@waybill.test>`));
  });

  test("comes from the tenant's sender where there is one", async () => {
    const emailSender = { fromAddress: "shop@münchen.test", fromName: "Le Café", smtpUrl: null };
    const { from, source } = await arrived(
      { subject: "s", html: "<p>x</p>" },
      aTenant({ emailSender, domains: verified("münchen.test") }),
    );
    const headers = new Map(parseHeaders(source));
    expect(from).toMatch(/^b\+[0-9a-f-]{36}@bounce\.münchen\.test$/);
    expect(headers.get("From")).toBe("=?UTF-8?Q?Le_Caf=C3=A9?= <shop@xn--mnchen-3ya.test>");
    expect(headers.get("Message-ID")).toEndWith(".acme@xn--mnchen-3ya.test>");
  });

  test("keeps its lines within what SMTP allows, whatever its HTML looks like", async () => {
    const { source } = await arrived({ subject: "ü".repeat(900), html: `<p>${"x".repeat(100_000)}</p>` });
    expect(Math.max(...source.split("\r\n").map((line) => Buffer.byteLength(line)))).toBeLessThanOrEqual(998);
  });

  test("may have lines of a single dot", async () => {
    const { source } = await arrived({ subject: "s", html: "<pre>a\n.\n..\nb</pre>" });
    expect(withoutPixel(parseParts(source)["text/html"])).toBe("<pre>a\r\n.\r\n..\r\nb</pre>");
  });
});

describe("hostile input", () => {
  // biome-ignore format: a list of words
  const HEADERS = [
    "From", "To", "Message-ID", "Subject", "Date", "MIME-Version", "Content-Type", "List-Unsubscribe",
    "List-Unsubscribe-Post",
  ].sort();
  const EVIL = [
    "\r\nBcc: eve@evil.test",
    "\nX-Evil: 1",
    "\r\n\r\n<p>body",
    "\0",
    "\u2028X-Evil: 1",
    "\u0085X: 1",
    "\r\n.\r\nMAIL FROM:<>",
  ];
  const NAMES = [
    '"',
    '\\"',
    "<eve@evil.test>",
    "Eve, eve@evil.test",
    "a:b;",
    "=?UTF-8?Q?=0D=0ABcc:_eve@evil.test?=",
    "\ud800",
    "(",
    "@",
  ];

  test.each([...EVIL, ...NAMES])("%p in subject, name and data adds no header and no recipient", async (evil) => {
    const message = await arrived({
      subject: `s${evil} {{.x}}`,
      toName: `Ana${evil}`,
      html: "<p>{{.x}}</p>",
      data: { x: evil },
    });
    const headers = parseHeaders(message.source);
    expect(headers.map(([name]) => name).sort()).toEqual(HEADERS);
    expect(new Map(headers).get("To")?.endsWith(`<${message.to}>`)).toBe(true);
    // The name must read as one: only quotes or encoded words may contain characters that separate addresses.
    const name = new Map(headers).get("To")?.slice(0, -message.to.length - 2) ?? "";
    expect(name.replace(/"(?:[^"\\]|\\.)*"/g, "").replace(/=\?[^?\s]+\?[QB]\?[^?\s]*\?=/g, "")).not.toMatch(
      /[,;:<>@"]/,
    );
    expect(message.subject).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
    expect(sandbox.inbox.messages("eve@evil.test", 1)).toEqual([]);
  });

  // biome-ignore format: a list of texts
  const WORDS = [
    "=?utf-8?B?UGF5IG5vdw==?=", "=?UTF-8?Q?Your_bank?= <security@bank.test>", "a =?iso-8859-1?q?=E9?= b", "=?utf-8?Q?a b?=",
    "=?utf-8?B?UGF5?= =?utf-8?B?IG5vdw==?=", "=?utf-8?X?nothing?=", "=?", "?= =?", "=?utf-8?Q?ünlike?=", '"=?utf-8?Q?q?="',
    "back\\slash =?utf-8?Q?q?=", `${"=?utf-8?Q?long?= ".repeat(20)}end`, "=?us-ascii?q??=", "👋 =?utf-8?B?8J+Riw==?=",
  ];

  test.each(WORDS)(
    "%p in a subject and in names is read as it was written, not decoded into something else",
    async (text) => {
      const emailSender = { fromAddress: "shop@acme.test", fromName: text, smtpUrl: null };
      const { source } = await arrived(
        { subject: "{{.x}}", toName: text, html: "<p>x</p>", data: { x: text } },
        aTenant({ emailSender, domains: verified("acme.test") }),
      );
      const headers = new Map(parseHeaders(source));
      const nameIn = (field: string) => {
        const name = (headers.get(field) ?? "").replace(/ <[^<>]*>$/, "");
        // As lenient readers do: removes quotes first, and then decodes every word.
        return decoded(name.startsWith('"') ? name.slice(1, -1).replace(/\\(.)/g, "$1") : name);
      };
      expect([decoded(headers.get("Subject") ?? ""), nameIn("To"), nameIn("From")]).toEqual([text, text, text]);
      expect(Math.max(...source.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
    },
  );

  test.each([
    ...EVIL.map((evil) => `ana${evil}@example.test`),
    ...EVIL.map((evil) => `ana@example.test${evil}`),
    "ana@example.test, eve@evil.test",
    "ana@example.test;eve@evil.test",
    "<ana@example.test>",
    "Ana <ana@example.test>",
    "group:ana@example.test,eve@evil.test;",
    "ana@example.test> SIZE=1",
    "ana@eve@evil.test",
    '"eve@evil.test>"@example.test',
    '"ana"eve@evil.test',
    '"ana@example.test',
    "ana",
    "@example.test",
    "ana@",
    "",
    `${"a".repeat(250)}@example.test`,
    // Stored before intake refused them.
    "a@[127.0.0.1]",
    "a@[IPv6:::1]",
    "a@127.0.0.1",
    "a@localhost",
  ])("the address %p fails", async (to) => {
    expect(await deliver({ ...LETTER, to })).toMatchObject({
      kind: "failed",
      error: expect.stringContaining("address"),
    });
  });

  test.each(['"a,b"@example.test', '"eve@evil.test"@example.test', '"a\\"b"@example.test', "o'hara+x@example.test"])(
    "the odd but valid address %p reaches that recipient or nobody",
    async (to) => {
      const before = sandbox.inbox.messages(null, 1_000).length;
      const outcome = await deliver({ ...LETTER, to });
      const added = sandbox.inbox.messages(null, 1_000).slice(0, sandbox.inbox.messages(null, 1_000).length - before);
      if (outcome.kind === "delivered") expect(added.map((message) => message.to)).toEqual([to]);
      else expect([outcome.kind, added]).toEqual(["failed", []]);
    },
  );

  test("no content is fetched from a file or an address", async () => {
    const html = '<img src="file:///etc/passwd"><img src="data:text/plain,x"><p>{{.x}}</p>';
    const { source } = await arrived({ subject: "s", html, data: { x: { path: "/etc/passwd" } } });
    expect(parseParts(source)["text/html"]).toContain("&quot;path&quot;:&quot;/etc/passwd&quot;");
    expect(source).not.toContain("root:");
  });
});

describe("a recipient of the sandbox", () => {
  test("at any other domain is accepted, and delivery is reported for the job", async () => {
    const job = emailJob({ ...LETTER, to: "x@sub.bounce.test" });
    const outcome = await channel.deliver(job, aTenant(), NEVER);
    expect(outcome).toMatchObject({
      kind: "delivered",
      result: {},
      providerRef: expect.stringMatching(/^[0-9A-Z]{10}$/),
    });
    const report = await eventually("a report", () => reports.find(({ jobId }) => jobId === job.jobId));
    expect(report).toEqual({
      tenantId: "acme",
      jobId: job.jobId,
      type: "delivered",
      result: {},
      suppressRecipient: null,
    });
  });

  test("@bounce.test is accepted, and a hard bounce is reported", async () => {
    const job = emailJob({ ...LETTER, to: "Bob@BOUNCE.test" });
    expect((await channel.deliver(job, aTenant(), NEVER)).kind).toBe("delivered");
    const report = await eventually("a report", () => reports.find(({ jobId }) => jobId === job.jobId));
    expect(report).toMatchObject({ type: "bounced", suppressRecipient: "bob@bounce.test" });
    expect(report.result).toEqual({
      code: 550,
      enhanced_code: "5.1.1",
      diagnostic: expect.stringContaining("550 5.1.1 <"),
    });
  });

  test("@reject.test fails with what the server said", async () => {
    const outcome = await deliver({ ...LETTER, to: "x@reject.test" });
    expect(outcome).toMatchObject({
      kind: "failed",
      error: "the mail server refused the message: 550 5.7.1 <x@reject.test>: Recipient refused by local policy",
    });
  });

  test("@defer.test is put off twice and then accepted, each message by itself", async () => {
    const [one, other] = [emailJob({ ...LETTER, to: "x@defer.test" }), emailJob({ ...LETTER, to: "x@defer.test" })];
    const kinds: string[] = [];
    for (const job of [one, other, one, other, one, other]) {
      kinds.push((await channel.deliver(job, aTenant(), NEVER)).kind);
    }
    expect(kinds).toEqual(["retry", "retry", "retry", "retry", "delivered", "delivered"]);
  });

  test("@down.test loses the connection, which is tried again later and not within the delivery", async () => {
    const outcome = await deliver({ ...LETTER, to: "x@down.test" });
    expect(outcome).toMatchObject({ kind: "retry", why: expect.stringContaining("dropped the connection") });
    expect(sandbox.inbox.messages("x@down.test", 1)).toEqual([]);
    expect((await deliver({ ...LETTER, to: someone() })).kind).toBe("delivered");
  });
});

describe("a cancelled delivery", () => {
  test("ends at once as retry while the server is still thinking", async () => {
    const calledOff = new AbortController();
    const delivery = channel.deliver(emailJob({ ...LETTER, to: "x@slow.test" }), aTenant(), calledOff.signal);
    const meanwhile = await deliver({ ...LETTER, to: someone() });
    calledOff.abort();
    expect(await delivery).toMatchObject({ kind: "retry" });
    expect(meanwhile.kind).toBe("delivered");
  });

  test("sends nothing if it is cancelled before it begins", async () => {
    expect(await channel.deliver(emailJob({ ...LETTER, to: someone() }), aTenant(), AbortSignal.abort())).toMatchObject(
      { kind: "retry" },
    );
    expect(sandbox.inbox.messages(someone(), 1)).toEqual([]);
  });

  test("by closing the channel is retry, and nothing is sent afterwards", async () => {
    const kinds = await withChannel({}, async (other) => {
      const delivery = deliver({ ...LETTER, to: "x@slow.test" }, aTenant(), other);
      await deliver({ ...LETTER, to: someone() }, aTenant(), other);
      other.close();
      return [(await delivery).kind, (await deliver(LETTER, aTenant(), other)).kind];
    });
    expect(kinds).toEqual(["retry", "retry"]);
  });
});

describe("a mail server", () => {
  const tryAt = (smtpUrl: string) => withChannel({ smtpUrl }, (other) => deliver(LETTER, aTenant(), other));

  test("that is not there is away", async () => {
    const url = await withServer(
      () => {},
      async (gone) => gone,
    );
    expect(await tryAt(url)).toMatchObject({ kind: "away", why: expect.stringContaining("could not be reached") });
  });

  test("whose name does not exist is away", async () => {
    expect((await tryAt("smtp://no-such-host.invalid:2525")).kind).toBe("away");
  });

  test.each<[string, string, Outcome["kind"]]>([
    ["EHLO", "421 4.3.2 busy", "away"],
    ["EHLO", "554 5.7.1 no service for you", "away"],
    ["MAIL", "451 4.3.0 later", "retry"],
    ["MAIL", "530 5.7.0 authentication required", "away"],
    ["MAIL", "503 5.5.1 out of order", "retry"],
    ["RCPT", "450 4.2.0 greylisted", "retry"],
    ["RCPT", "550 5.1.1 no such user", "failed"],
    ["RCPT", "550 5.7.1 policy", "failed"],
    ["DATA", "554 5.7.1 spam", "failed"],
    ["DATA", "421 4.7.0 closing", "retry"],
    [".", "552 5.3.4 too large", "failed"],
    [".", "452 4.3.1 no space", "retry"],
    [".", "garbage", "retry"],
  ])("that answers %p with %p", async (command, answer, kind) => {
    const replies: Record<string, string> = {
      EHLO: "250 here",
      MAIL: "250 ok",
      RCPT: "250 ok",
      DATA: "354 go",
      ".": "250 ok",
      RSET: "250 ok",
    };
    replies[command] = answer;
    if (command === "EHLO") replies["HELO"] = answer;
    const outcome = await withServer((line, socket) => {
      const reply = replies[line.split(/[ :]/)[0] ?? ""];
      if (reply !== undefined) socket.write(`${reply}\r\n`);
    }, tryAt);
    expect(outcome.kind).toBe(kind);
    if (outcome.kind === "failed") expect(outcome.error).toBe(`the mail server refused the message: ${answer}`);
  });

  test("cannot make an error long, of several lines, or of the platform's own names", async () => {
    const reply = `550-5.7.1 \x1b[31m one\r\n550 5.7.1 mx 127.0.0.1 at 10.1.2.3 ${"x".repeat(5_000)}\r\n`;
    const outcome = await withServer((line, socket) => {
      socket.write(line.startsWith("MAIL") ? reply : "250 ok\r\n");
    }, tryAt);
    if (outcome.kind !== "failed") throw new Error(outcome.kind);
    expect(outcome.error).toMatch(
      /^the mail server refused the message: 550-5\.7\.1 \[31m one 550 5\.7\.1 mx \(…\) at \(…\) x+…$/,
    );
    expect(outcome.error.length).toBeLessThan(350);
  });

  test("that refuses the tenant's credentials fails the job, but with the platform's it is away", async () => {
    const refuseLogin = (line: string, socket: Socket) => {
      socket.write(
        line.startsWith("EHLO") ? "250-here\r\n250 AUTH PLAIN\r\n" : "535 5.7.8 wrong for mallory:hunter2\r\n",
      );
    };
    const [own, platform] = await withServer(refuseLogin, async (url) => {
      const smtpUrl = url.replace("//", "//mallory:hunter2@");
      const emailSender = { fromAddress: "a@acme.test", fromName: null, smtpUrl };
      const tenant = aTenant({ emailSender, domains: verified("acme.test"), allowCustom: new Set(["email"]) });
      return [await withChannel({}, (other) => deliver(LETTER, tenant, other)), await tryAt(smtpUrl)];
    });
    expect(own).toMatchObject({
      kind: "failed",
      error: "your mail server refused the credentials that are stored for it: 535 5.7.8 wrong for (…):(…)",
    });
    const why = "the mail server refused this service's credentials";
    expect(platform).toMatchObject({ kind: "away", why });
  });

  test("of the tenant is used only where the tenant may use its own and mail may leave the machine", async () => {
    const own = await startSmtpSandbox({ clock: systemClock, telemetry: new QuietTelemetry(), onReport: () => {} });
    try {
      const emailSender = { fromAddress: "a@acme.test", fromName: null, smtpUrl: own.url };
      const allowed = aTenant({ emailSender, domains: verified("acme.test"), allowCustom: new Set(["email"]) });
      await deliver({ ...LETTER, to: someone() }, aTenant({ emailSender, domains: verified("acme.test") }));
      await withChannel({ ownRelays: null }, (other) => deliver({ ...LETTER, to: someone() }, allowed, other));
      expect(own.inbox.messages(null, 10)).toEqual([]);
      await deliver({ ...LETTER, to: someone() }, allowed);
      expect(own.inbox.messages(null, 10)).toHaveLength(1);
      expect(sandbox.inbox.messages(someone(), 10)).toHaveLength(2);
    } finally {
      await own.stop();
    }
  });

  test("gets many messages over few connections", async () => {
    const to = someone();
    await withChannel({ connectionsMax: 3 }, async (other) => {
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, () => deliver({ ...LETTER, to }, aTenant(), other)),
      );
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["delivered"]));
    });
    expect(sandbox.inbox.messages(to, 200)).toHaveLength(100);
  });
});

test("an address that is no SMTP URL is refused at the start, without repeating it", () => {
  for (const smtpUrl of ["", "http://x.test", "smtp://", "smtp://a%zz@x.test"]) {
    expect(() => new EmailChannel({ smtpUrl, defaultFrom: FROM, ...LINKS })).toThrow("not an SMTP URL");
  }
});

/** Decodes encoded words (RFC 2047, 6.2) as a reader does, wherever they stand. */
function decoded(value: string): string {
  const decodeBytes = (encoding: string, text: string) =>
    encoding.toUpperCase() === "B"
      ? Buffer.from(text, "base64")
      : Buffer.from(
          text.replaceAll("_", " ").replace(/=([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(Number(`0x${hex}`))),
          "latin1",
        );
  return value
    .replace(/(\?=)\s+(?==\?)/g, "$1")
    .replace(/=\?[^?]+\?([BQ])\?([^?]*)\?=/gi, (_, encoding: string, text: string) =>
      decodeBytes(encoding, text).toString(),
    );
}
