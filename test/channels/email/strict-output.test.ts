import { describe, expect, test } from "bun:test";
import PostalMime from "postal-mime";
import { readAttachments } from "../../../src/channels/email/attachments.ts";
import { subjectValue, toMailbox } from "../../../src/channels/email/mime/header-values.ts";
import { type MailParts, mailMessage } from "../../../src/channels/email/mime/mail-message.ts";
import type { Attachment } from "../../../src/channels/email/mime/multipart.ts";
import { acceptEmail } from "../../../src/channels/email/request.ts";
import { SmtpTransaction } from "../../../src/channels/email/smtp/smtp-transaction.ts";
import { aTenant } from "../../support/tenants.ts";

/* Our output obeys the RFCs whatever name a caller gives to a file, a type or a subject. */

const BOX = { value: "a@shop.test", address: "a@shop.test" };
async function written(parts: Partial<MailParts>): Promise<string> {
  const { text, rest } = await mailMessage({
    from: BOX,
    to: BOX,
    envelopeFrom: "a@shop.test",
    subject: "s",
    messageId: "<1@shop.test>",
    dateMs: 0,
    headers: [],
    html: null,
    text: { encoding: "7bit", body: "Hello\r\n" },
    signer: null,
    ...parts,
  });
  return text + Buffer.concat([...(rest?.chunks() ?? [])]).toString("latin1");
}
const attached = (filename: string, body: string | Uint8Array, more: Partial<Attachment> = {}) =>
  written({ attachments: [{ filename, body: typeof body === "string" ? Buffer.from(body) : body, ...more }] });
const accepted = (file: object) => readAttachments([{ content: "AAAA", ...file }]);

const EML = "From: a@x.test\r\nSubject: inner\r\n\r\nline\r\n.dot\r\n";

describe("an attached message", () => {
  test.each([
    ["with CRLF", EML],
    ["with LF", EML.replaceAll("\r\n", "\n")],
  ])("is not encoded, so that it opens as a message: %s", async (_what, body) => {
    const raw = await attached("note.eml", body);
    expect(raw).toContain("Content-Type: message/rfc822");
    expect(raw).toContain("Content-Transfer-Encoding: 7bit");
    expect(raw).toContain(`\r\n\r\n${EML}`);
    expect(raw).not.toMatch(/[^\r]\n/);
  });

  test.each([
    ["has bytes beyond ASCII", Buffer.from(EML.replace("line", "größer"))],
    ["has a line that is too long", EML.replace("line", "x".repeat(999))],
    ["is no message", "\u0000binary"],
    ["is empty", ""],
  ])("is a file like any other if it %s", async (_what, body) => {
    const raw = await attached("note.eml", body);
    expect(raw).not.toContain("message/rfc822");
    const { attachments } = await PostalMime.parse(raw);
    const [file] = attachments;
    expect([file?.filename, file?.mimeType]).toEqual(["note.eml", "application/octet-stream"]);
    const content = file?.content;
    const bytes = content instanceof ArrayBuffer ? Buffer.from(content) : null;
    expect(bytes).toEqual(typeof body === "string" ? Buffer.from(body) : body);
  });

  test("may be named by its type, and a web archive is none", async () => {
    expect(accepted({ filename: "a.bin", content_type: "message/rfc822" })).toBeObject();
    for (const type of ["multipart/mixed", "message/partial", "message/rfc822x"])
      expect(accepted({ filename: "a.bin", content_type: type })).toBeString();
    const raw = await attached("page.mht", "MIME-Version: 1.0\r\n\r\n");
    expect(raw).toContain("Content-Type: application/x-mimearchive");
    expect(raw).toContain("Content-Transfer-Encoding: base64");
  });
});

test.each([
  ["t.pkpass", "application/vnd.apple.pkpass"],
  ["t.PKPASSES", "application/vnd.apple.pkpasses"],
  ["i.heic", "image/heic"],
  ["i.heif", "image/heif"],
  ["i.avif", "image/avif"],
  ["i.jxl", "image/jxl"],
  ["i.webp", "image/webp"],
  ["f.woff2", "font/woff2"],
  ["d.md", "text/markdown"],
  ["d.pdf", "application/pdf"],
  ["d.unknown", "application/octet-stream"],
  ["constructor", "application/octet-stream"],
])("the ending of %s says its type", async (filename, type) => {
  expect(await attached(filename, "x")).toContain(`Content-Type: ${type}`);
});

describe("a file's name", () => {
  test.each([
    ["Persian with ZWNJ", "می\u200cخواهم.pdf"],
    ["a family", "👨\u200d👩\u200d👧\u200d👦.png"],
    ["a flag of tags", "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}.png"],
    ["a soft hyphen", "Donau\u00addampf.pdf"],
    ["a variation selector", "❤\ufe0f.png"],
    ["Hebrew with a mark", "שלום\u200f (1).pdf"],
    ["quotes and percents", `50% "best" * 'x'.pdf`],
    ["255 letters", `${"ä".repeat(251)}.pdf`],
  ])("arrives as it was given: %s", async (_what, filename) => {
    expect(accepted({ filename })).toBeObject();
    const raw = await attached(filename, "x");
    expect(raw).toMatch(/^[\x20-\x7e\r\n]*$/);
    expect(Math.max(...raw.split("\r\n").map(({ length }) => length))).toBeLessThanOrEqual(78);
    expect((await PostalMime.parse(raw)).attachments[0]?.filename).toBe(filename);
  });

  test.each([
    ["a\u202egpj.exe"],
    ["a\u2066b.pdf"],
    ["a\r\nb"],
    ["a/b"],
    ["a\\b"],
    ["\u200b\u200d"],
    ["\ud800.pdf"],
    ["a\u2028b"],
  ])("is refused if it hides what it is: %j", (filename) => {
    expect(accepted({ filename })).toBeString();
  });
});

describe("a file's type", () => {
  test.each([
    ['text/calendar; charset="utf-8"; method=REQUEST', "text/calendar; charset=utf-8; method=REQUEST"],
    ["text/calendar; charset=utf-8; method=REQUEST", "text/calendar; charset=utf-8; method=REQUEST"],
    ["Text/Calendar;METHOD=REQUEST ;charset = UTF-8;", "text/calendar; method=REQUEST; charset=UTF-8"],
    ['text/plain; format=flowed; delsp="yes"; x-a="b; c"', 'text/plain; format=flowed; delsp=yes; x-a="b; c"'],
    ["application/vnd.ms-excel", "application/vnd.ms-excel"],
  ])("is taken with any parameters of RFC 2045, and written strictly: %s", async (given, strict) => {
    const read = accepted({ filename: "a.bin", content_type: given });
    const [file] = typeof read === "string" ? [] : read.attachments;
    expect(file?.contentType).toBe(strict);
    const raw = await attached("a.bin", "x", { contentType: strict });
    expect(raw.replaceAll("\r\n ", " ")).toContain(`Content-Type: ${strict}`);
  });

  test.each([
    ["text"],
    ["text/plain; charset"],
    ['text/plain; a="b'],
    ["text/plain; a=b; A=c"],
    ["text/plain; a=b\r\nX: y"],
    ["text/plain x"],
  ])("is refused if it is none: %j", (content_type) => {
    expect(accepted({ filename: "a.bin", content_type })).toBeString();
  });
});

describe("a header", () => {
  const lines = (raw: string) =>
    Math.max(...(raw.split("\r\n\r\n")[0] ?? "").split("\r\n").map(({ length }) => length));

  test.each([
    ["998 letters", "a".repeat(998)],
    ["998 letters beyond ASCII", "ä".repeat(998)],
    ["words and one long one", `Order ${"x".repeat(300)} has come`],
    ["many words", "word ".repeat(190).trim()],
    ["a long gap", `a${" ".repeat(200)}b`],
    ["quotes", `"${"q".repeat(500)}"`],
  ])("has no line of more than 78 characters, and reads as it was: a subject of %s", async (_what, subject) => {
    const raw = await written({ subject });
    expect(lines(raw)).toBeLessThanOrEqual(78);
    expect((await PostalMime.parse(raw)).subject).toBe(subject);
    expect(subjectValue("Your order 7 has come")).toBe("Your order 7 has come");
  });

  test.each([["n".repeat(998)], [`Dr. ${"n".repeat(500)}, Jr.`], ["ö".repeat(400)], ["First Last ".repeat(30).trim()]])(
    "has no line of more than 78 characters, and reads as it was: a name",
    async (name) => {
      const to = toMailbox({ address: "ann@example.test", name });
      const raw = await written({ ...(to !== null && { to }) });
      expect(lines(raw)).toBeLessThanOrEqual(78);
      expect((await PostalMime.parse(raw)).to?.[0]).toMatchObject({ address: "ann@example.test", name });
    },
  );

  test("with an address beyond ASCII goes to a relay with SMTPUTF8 alone, whichever header it is", async () => {
    const jorg = toMailbox({ address: "jörg@example.test", name: null });
    const replyTo = jorg === null ? [] : [jorg];
    const signer = null;
    const base = { from: BOX, to: BOX, envelopeFrom: "a@shop.test", subject: "s", messageId: "<1@a>", dateMs: 0 };
    const mail = await mailMessage({
      ...base,
      headers: [],
      html: null,
      text: { encoding: "7bit", body: "x" },
      signer,
      replyTo,
    });
    const said = (offers: readonly string[]) => {
      const out: unknown[] = [];
      const line = { write: (text: string) => out.push(text), pour() {}, done: (result: unknown) => out.push(result) };
      new SmtpTransaction(mail, new Set(offers), line).begin();
      return out;
    };
    expect(said([])).toEqual([expect.objectContaining({ code: "ESMTPUTF8" })]);
    expect(said(["SMTPUTF8"])).toEqual(["MAIL FROM:<a@shop.test> SMTPUTF8\r\n"]);
    expect(toMailbox({ address: "a@bücher.test", name: null })?.address).toBe("a@xn--bcher-kva.test");
  });
});

describe("a placeholder without its dot", () => {
  const send = (more: object) =>
    acceptEmail(aTenant({ permissions: new Set(["allow_raw_html"]) }), {
      to_address: "a@b.test",
      subject: "s",
      ...more,
    });

  test.each([
    ["html", { html: "<p>Hi {{name}}</p>" }, "{{name}}", "{{.name}}"],
    ["html", { html: "<p>Hi {{ user.name }}</p>" }, "{{ user.name }}", "{{.user.name }}"],
    ["text", { text: "Hi {{name}}" }, "{{name}}", "{{.name}}"],
    ["subject", { subject: "Hi {{name}}", text: "x" }, "{{name}}", "{{.name}}"],
  ])("of a variable that data has is refused with the right spelling: in %s", (field, more, wrong, right) => {
    expect(send({ ...more, data: { name: "Ada", user: {} } })).toMatchObject({
      ok: false,
      refusal: {
        status: 400,
        message: `${field} has "${wrong}", which is no placeholder: write ${right} for the value that data has`,
      },
    });
  });

  test("is sent as it stands where data has no such variable: those braces are the message's own", () => {
    for (const data of [undefined, {}, { other: 1 }])
      expect(send({ text: "Hi {{name}} {{.other}}", data })).toMatchObject({ ok: true });
  });
});
