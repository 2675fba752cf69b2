import { describe, expect, test } from "bun:test";
import nodemailer from "nodemailer";
import DKIM from "nodemailer/lib/dkim";
import { headerText } from "../../../src/channels/email/content/header-text.ts";
import { Template } from "../../../src/channels/email/content/template.ts";
import { trackedHtml } from "../../../src/channels/email/content/tracked-html.ts";
import { EmailComposer } from "../../../src/channels/email/email-composer.ts";
import { encodedText, withCrlf } from "../../../src/channels/email/mime/body-encoding.ts";
import { toMailbox } from "../../../src/channels/email/mime/header-values.ts";
import { type MailParts, mailMessage } from "../../../src/channels/email/mime/mail-message.ts";
import { LinesAndFiles } from "../../../src/channels/email/mime/message-rest.ts";
import type { Attachment } from "../../../src/channels/email/mime/multipart.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { TEST_SELECTOR, verified } from "../../support/sending-domain.ts";
import { aTenant } from "../../support/tenants.ts";

/*
 * Messages of all kinds, built as the channel builds them: compared with the output of nodemailer's composer for the
 * same input, and read by a parser that shares no code with either.
 */

const SIGNED_MAILS = 300;
const MAILS = Number(process.env["WAYBILL_MAILS"] ?? 2_000);
const TIMEOUT_MS = 30_000 + MAILS * 30;
/** On longer lines a soft break may stand elsewhere than in nodemailer's output. */
const LINE_MAX = 240;
const LONG_LINE = new RegExp(`.{${LINE_MAX + 1}}`);

const WORDS = [
  "Hello",
  "order",
  "4711",
  "left",
  "us",
  "and",
  "arrives",
  ",",
  ".",
  "a=b",
  "Größe",
  "naïve",
  "日本語の長い文章です",
  "مرحبا",
  "\u202eright to left\u202c",
  "👋",
  "👨‍👩‍👧‍👦",
  "e\u0301",
  "=?",
  "?=",
  "_",
  "=",
  "==20",
  "…",
  "\t",
  "  ",
  "x".repeat(80),
  "y".repeat(300),
  "ü".repeat(60),
  "From ",
  ".",
  "..",
  "\u00a0",
  "\u2028",
  "\u00ad",
  "&amp;",
  "--",
  "=_",
  "\0",
  "\u007f",
  "\r",
  "😀".repeat(30),
];
const HTML = [
  "<p>",
  "</p>",
  "<br>\n",
  "\n",
  "\n",
  "\r\n",
  "<b>",
  "</b>",
  '<a href="https://shop.test/a?x=1&amp;y=2">',
  "</a>",
  "<a href='{{.url}}'>",
  '<a href="https://shop.test/{{.a}}/{{.b}}">',
  "<a href={{.a}}>",
  '<img src="https://shop.test/i.png" alt="An image">',
  "<!-- {{.a}} -->",
  "<style>p { margin: 0 }</style>\n",
  "<{{.a}}>",
  '<td style="{{.b}}">',
  "\n.\n",
  "\n..",
  "{{.a}}",
  "{{.b}}",
  "{{.c}}",
  "{{.url}}",
  "</body>",
];
const NAMES = [
  "",
  "Ann Example",
  'Ann "Q" Example',
  "Example, Ann",
  "Änne Größe-Müller",
  "日本太郎",
  "👋",
  "back\\slash",
  "o'hara",
  "a".repeat(120),
  "مرحبا",
];
const ADDRESSES = [
  "ann.example@customer.example.com",
  "Ann@Customer.Example.com",
  "o'hara+x@example.test",
  '"a,b"@example.test',
  "ann@münchen.test",
  "jõ@jõgeva.test",
];

interface Specimen {
  readonly subject: string;
  readonly fromName: string;
  readonly toName: string;
  readonly to: string;
  readonly html: string;
  readonly text: string | null;
  /** The message as it goes over the wire. */
  readonly source: string;
}

const PIXEL = "https://send.test/t/o/" + "k3".repeat(40) + ".gif";
const trackedUrl = (url: string) => `https://send.test/t/c/${Buffer.from(url).toString("base64url")}`;
const DATE_MS = Date.UTC(2026, 10, 22, 10, 30, 5);
const HEADERS = [
  ["List-Unsubscribe", `<https://send.test/u/${"t".repeat(120)}>`],
  ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
] as const;

const composer = new EmailComposer();

async function specimen(next: () => number, signer: MailParts["signer"] = null): Promise<Specimen> {
  const one = <T>(of: readonly T[], otherwise: T): T => of[Math.floor(next() * of.length)] ?? otherwise;
  const some = (of: readonly string[], max: number, between: string) =>
    Array.from({ length: Math.floor(next() * max) }, () => one(of, "")).join(between);
  // Many are of ASCII alone, as most mail is.
  const words = next() < 0.4 ? WORDS.filter((word) => /^[ -~]+$/.test(word)) : WORDS;
  const prose = () => some(words, 12, " ");
  const data = {
    a: one(["", "br", "x y", prose()], ""),
    b: prose(),
    c: `${prose()}\n${prose()}`,
    url: `https://v.test/${next()}?q="'&`,
  };
  const template = {
    subject: headerText(prose(), 400),
    html: `<p>x</p>${some([...HTML, ...words], 60, next() < 0.5 ? " " : "")}`,
    text: next() < 0.5 ? null : some([...words, "\n", "{{.a}}", "{{.c}}", "{{.url}}"], 40, " "),
  };
  const tenant = aTenant({ emailTemplates: new Map([["t", template]]) });
  const composed = composer.compose({ to: "", template: "t", data }, tenant);
  if (composed.kind === "impossible") throw new Error(composed.error);
  const { subject, html, text } = composed.content;
  if (html === null) throw new Error("a template has HTML");
  const [fromName, toName, to] = [one(NAMES, ""), one(NAMES, ""), one(ADDRESSES, "")];
  const from = toMailbox({ address: "orders@shop.example.test", name: fromName });
  const recipient = toMailbox({ address: to, name: toName });
  if (from === null || recipient === null) throw new Error("an address that cannot be sent to");
  const message = await mailMessage({
    from,
    to: recipient,
    envelopeFrom: "b@shop.example.test",
    subject,
    messageId: "<0199.acme@shop.example.test>",
    dateMs: DATE_MS,
    headers: HEADERS,
    html: html.template.encodeTracked(html.values, { pixel: PIXEL, trackedUrl }),
    text: text === null ? null : text.template.encode(text.values),
    signer,
  });
  const filled = Template.parse(template.html).render(data, "html", 1e6);
  return {
    subject,
    fromName,
    toName,
    to,
    html: withCrlf(trackedHtml(filled, { pixel: PIXEL, trackedUrl })).toWellFormed(),
    text: text === null ? null : withCrlf(text.template.text(text.values)).toWellFormed(),
    source: message.text,
  };
}

async function specimens(count = MAILS, signer?: MailParts["signer"]): Promise<readonly Specimen[]> {
  const random = new SeededRandom(20_261_122);
  const made: Specimen[] = [];
  for (let i = 0; i < count; i += 1) made.push(await specimen(() => random.next(), signer));
  return made;
}

const nodemailers = nodemailer.createTransport({ streamTransport: true, buffer: true });

async function byNodemailer({ subject, fromName, toName, to, html, text }: Specimen): Promise<string> {
  const { message } = await nodemailers.sendMail({
    from: { address: "orders@shop.example.test", name: fromName },
    to: { address: to, name: toName },
    subject,
    messageId: "<0199.acme@shop.example.test>",
    headers: Object.fromEntries(HEADERS.map(([name, value]) => [name, { prepared: true, value }])),
    html,
    ...(text === null ? {} : { text }),
    xMailer: false,
  });
  return String(message);
}

/** The first header without its white space, and what is behind it. */
function apart(source: string): { readonly signature: string; readonly message: string } {
  const end = /\r\n(?! )/.exec(source)?.index ?? 0;
  return { signature: source.slice(0, end).replace(/\s/g, ""), message: source.slice(end + 2) };
}

/** Replaces the boundary and the date with fixed values. */
function comparable(source: string): string {
  const dated = source.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000$/m, "Date: now");
  const boundary = /boundary="([^"]+)"/.exec(source)?.[1];
  return boundary === undefined ? dated : dated.replaceAll(boundary, "boundary");
}

const withoutSoftBreaks = (source: string) => source.replaceAll("=\r\n", "");

test(
  "a message is, byte for byte, what nodemailer's composer makes of it, but for soft breaks on long lines",
  async () => {
    let identical = 0;
    for (const mail of await specimens()) {
      // nodemailer treats text that only looks encoded as encoded.
      if (mail.subject.includes("=?")) continue;
      const [ours, theirs] = [comparable(mail.source), comparable(await byNodemailer(mail))];
      // Words and gaps that fit on no line are encoded, which nodemailer leaves as they are.
      if (/^(?:From|To|Subject):[^]*?(?:[^\s=?<>]{60}| {60})/m.test(theirs.split("\r\nMessage-ID")[0] ?? "")) continue;
      const isShort = [mail.html, mail.text ?? "-".repeat(LINE_MAX)].every(
        // nodemailer has its own rule for a single line, and also looks for a blank at its end.
        (text) => text.length > 76 && !/[ \t]$/.test(text) && !LONG_LINE.test(text),
      );
      if (isShort) identical += 1;
      expect(isShort ? ours : withoutSoftBreaks(ours)).toBe(isShort ? theirs : withoutSoftBreaks(theirs));
    }
    expect(identical).toBeGreaterThan(MAILS / 50);
  },
  TIMEOUT_MS,
);

describe("a message with copies, headers and files", () => {
  const files = {
    pdf: { filename: "Rechnung für Ä.pdf", body: new Uint8Array(100).fill(65) },
    logo: { filename: "logo.png", contentId: "logo@shop", body: new Uint8Array(57).fill(66) },
    notes: { filename: 'a "b".txt', contentType: "text/plain; charset=utf-8", body: new Uint8Array(0) },
    long: { filename: "long.bin", body: Uint8Array.from({ length: 200_003 }, (_, i) => i * 7) },
  };
  const domain = "shop.example.test";
  const key = verified(domain).get(domain)?.relay;

  async function both(parts: {
    readonly html?: string;
    readonly text?: string;
    readonly attachments: readonly Attachment[];
  }) {
    const from = toMailbox({ address: "orders@shop.example.test", name: null });
    const [to, cc] = [
      toMailbox({ address: "ann@example.test", name: "Ann" }),
      toMailbox({ address: "bob@example.test", name: "Bøb" }),
    ];
    const reply = toMailbox({ address: "help@shop.example.test", name: null });
    if (from === null || to === null || cc === null || reply === null) throw new Error("an address");
    if (key === undefined || key === null) throw new Error("the domain has a key");
    const { html, text, attachments } = parts;
    const message = await mailMessage({
      from,
      to,
      cc: [cc, reply],
      replyTo: [reply],
      envelopeFrom: "b@shop.example.test",
      subject: "Größe",
      messageId: "<0199.acme@shop.example.test>",
      dateMs: DATE_MS,
      headers: [],
      ownHeaders: [
        ["X-Entity-Ref", "Bestellung für Ä"],
        ["List-ID", "<news.shop.example.test>"],
      ],
      html: html === undefined ? null : encodedText(html),
      text: text === undefined ? null : encodedText(text),
      attachments,
      signer: { domain, key },
    });
    const rest = Buffer.concat([...(message.rest?.chunks() ?? [])]).toString("latin1");
    expect(message.rest?.bytes ?? 0).toBe(rest.length);
    const { message: theirs } = await nodemailers.sendMail({
      from: "orders@shop.example.test",
      to: { address: "ann@example.test", name: "Ann" },
      cc: [{ address: "bob@example.test", name: "Bøb" }, "help@shop.example.test"],
      replyTo: "help@shop.example.test",
      subject: "Größe",
      messageId: "<0199.acme@shop.example.test>",
      headers: { "X-Entity-Ref": "Bestellung für Ä", "List-ID": "<news.shop.example.test>" },
      ...(html === undefined ? {} : { html }),
      ...(text === undefined ? {} : { text }),
      attachments: attachments.map(({ filename, contentType, contentId, body }) => ({
        filename,
        content: Buffer.from(body),
        ...(contentType && { contentType }),
        ...(contentId && { cid: contentId }),
      })),
      xMailer: false,
    });
    return { ours: message.text + rest, theirs: String(theirs) };
  }

  /** Boundaries are random, and their length decides whether their header is folded. */
  function alike(source: string): string {
    const boundaries = [...source.matchAll(/boundary="([^"]+)"/g)].map(([, name = ""]) => name);
    const named = boundaries.reduce((text, name, at) => text.replaceAll(name, `boundary-${at}`), source);
    // Nodemailer names files by encoded words within quotes, which RFC 2047 (5) forbids.
    const unnamed = named.replace(/;\s+name="=\?[^"]*"/g, "").replace(/(?:;\s+name\*\d+\*=[^\s;]+)+/g, "");
    return comparable(unnamed.replace(/;\s+boundary=/g, "; boundary="));
  }

  test.each([
    [
      "HTML and text, with a file and an image",
      { html: "<p>x</p>", text: "x\r\n", attachments: [files.pdf, files.logo] },
    ],
    ["HTML alone, with an image", { html: "<p>x</p>\r\n", attachments: [files.logo] }],
    ["HTML and text, with files", { html: "<p>x</p>", text: "x ", attachments: [files.pdf, files.notes, files.long] }],
    ["text alone, with a file and an image", { text: "naïve ", attachments: [files.long, files.logo] }],
    ["text alone", { text: "x\r\n", attachments: [] }],
  ])("%s: is, byte for byte, what nodemailer makes of it, and so is its signature", async (_what, parts) => {
    const { ours, theirs } = await both(parts);
    const { signature, message } = apart(ours);
    expect(alike(message)).toBe(alike(theirs));
    const headerFieldNames =
      "from:reply-to:subject:date:message-id:to:cc:mime-version:content-type:content-transfer-encoding";
    const dkim = new DKIM({
      domainName: domain,
      keySelector: TEST_SELECTOR,
      privateKey: key?.privateKeyPem ?? "",
      headerFieldNames,
    });
    let signed = "";
    for await (const chunk of dkim.sign(message)) signed += String(chunk);
    expect(signature).toBe(apart(signed).signature);
  });

  test("a file is encoded while it is read: no more than a piece of it at a time", () => {
    const rest = new LinesAndFiles(["--b\r\n", new Uint8Array(10 * 1024 * 1024), "\r\n--b--\r\n"]);
    const sizes = Array.from(rest.chunks(), ({ length }) => length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64 * 1024);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(rest.bytes);
  });
});

test(
  "a signature is the one that nodemailer makes: over the same headers and the same body, with the same key",
  async () => {
    const domain = "shop.example.test";
    const key = verified(domain).get(domain)?.relay;
    if (key === undefined || key === null) throw new Error("the domain has a key");
    const headerFieldNames =
      "from:reply-to:subject:date:message-id:to:cc:mime-version:content-type:content-transfer-encoding:" +
      "list-unsubscribe:list-unsubscribe-post:feedback-id";
    const dkim = new DKIM({
      domainName: domain,
      keySelector: TEST_SELECTOR,
      privateKey: key.privateKeyPem,
      headerFieldNames,
    });
    for (const { source } of await specimens(SIGNED_MAILS, { domain, key })) {
      const { signature, message } = apart(source);
      let theirs = "";
      for await (const chunk of dkim.sign(message)) theirs += String(chunk);
      expect(signature).toStartWith("DKIM-Signature:v=1;a=rsa-sha256;c=relaxed/relaxed;d=shop.example.test;");
      expect(signature).toBe(apart(theirs).signature);
    }
  },
  TIMEOUT_MS,
);

test(
  "its lines are short, end with CRLF, and are ASCII but for addresses that are none",
  async () => {
    for (const { source, to } of await specimens()) {
      expect(/[\r\n]/.test(source.replaceAll("\r\n", ""))).toBe(false);
      expect(source.endsWith("\r\n")).toBe(true);
      expect(source.includes("\0")).toBe(false);
      const [head = "", ...body] = source.split("\r\n\r\n");
      expect(/^[\0-\x7f]*$/.test(to.startsWith("jõ") ? body.join("") : source)).toBe(true);
      expect(Math.max(...head.split("\r\n").map((line) => Buffer.byteLength(line)))).toBeLessThanOrEqual(998);
      expect(
        Math.max(
          ...body
            .join("\r\n\r\n")
            .split("\r\n")
            .map((line) => line.length),
        ),
      ).toBeLessThanOrEqual(76);
    }
  },
  TIMEOUT_MS,
);

/** Python's own parser, which shares no code with ours. */
const PYTHON = "/usr/bin/python3";
const hasPython = Bun.spawnSync([PYTHON, "-c", "import email"], { stderr: "ignore" }).exitCode === 0;

const READER = `
import sys, json, email, email.policy, email.header, email.utils
policy = email.policy.compat32
def words(text):
    text = text.replace("\\r\\n", "").replace("\\n", "").lstrip()
    return str(email.header.make_header(email.header.decode_header(text)))
for line in sys.stdin:
    message = email.message_from_bytes(json.loads(line).encode("utf-8"), policy=policy)
    bodies = {part.get_content_type(): part.get_payload(decode=True).decode("utf-8") for part in message.walk() if not part.is_multipart()}
    name, address = email.utils.parseaddr(str(message["to"]))
    sender = email.utils.parseaddr(str(message["from"]))[0]
    fields = [len(part.defects) for part in message.walk()]
    print(json.dumps({"subject": words(message["subject"] or ""), "to": words(name), "from": words(sender), "bodies": bodies, "defects": sum(fields), "headers": len(message.keys())}))
`;

interface Reading {
  readonly subject: string;
  readonly to: string;
  readonly from: string;
  readonly bodies: Readonly<Record<string, string>>;
  readonly defects: number;
  readonly headers: number;
}

test.skipIf(!hasPython)(
  `another program's parser reads what was written${hasPython ? "" : " (skipped: /usr/bin/python3 is not there)"}`,
  async () => {
    // A raw address beyond ASCII requires a reader of RFC 6532, which this one is not.
    const mails = (await specimens()).filter(({ to }) => !to.startsWith("jõ"));
    const input = new Blob([mails.map(({ source }) => `${JSON.stringify(source)}\n`).join("")]);
    const python = Bun.spawn([PYTHON, "-c", READER], { stdin: input, stdout: "pipe" });
    const lines = (await new Response(python.stdout).text()).trim().split("\n");
    expect(lines).toHaveLength(mails.length);
    for (const [i, mail] of mails.entries()) {
      const read = JSON.parse(lines[i] ?? "{}") as Reading; // The reader's output.
      expect([read.subject, read.to, read.from, read.defects]).toEqual([mail.subject, mail.toName, mail.fromName, 0]);
      // A message of a single part ends with a line end, its own or not.
      const end = mail.text === null ? /(?:\r\n)$/ : /$/;
      expect((read.bodies["text/html"] ?? "").replace(end, "")).toBe(mail.html.replace(end, ""));
      expect(read.bodies["text/plain"]).toBe(mail.text ?? undefined);
    }
  },
  TIMEOUT_MS,
);
