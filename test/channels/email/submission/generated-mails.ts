import type { Picker } from "../fuzzing.ts";
import { PLATFORM_SENDER } from "./submission-world.ts";

const WORDS = [
  "Order 7",
  "Grüße",
  "€ 5",
  "{{name}}",
  "{{ .Values.image }}",
  "{{{.a}}}",
  "a=b",
  "=?x?",
  ".",
  "From here",
  "日本語",
  "a  b",
  "--b0x",
  '"q"',
];
const CHARSETS = ["utf-8", "iso-8859-1", "us-ascii", "utf-16le", "x-unknown", ""] as const;

/** A mail of nested parts, drawn from the seed; each is allowed by RFC 5322 and MIME. */
export function generatedMail(pick: Picker, id: number): Buffer {
  const head = [
    `From: Shop <${PLATFORM_SENDER}>`,
    pick.of(["To: Ada <ada@example.com>", "To: ada@example.com, Bob <bob@example.com>"]),
    ...(pick.below(3) === 0 ? ["Reply-To: Help <help@shop.test>"] : []),
    ...(pick.below(8) === 0 ? [] : [`Message-ID: <${id}@generated.test>`]),
    ...(pick.below(3) === 0
      ? Array.from({ length: pick.below(30) }, (_, n) => `X-Part-${n}: ${pick.of(WORDS.slice(0, 1))}`)
      : []),
    pick.of([
      "Subject: Order 7",
      "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=",
      "Subject: {{name}} and {{ .x }}",
      "Subject: Gr\xc3\xbc\xc3\x9fe",
    ]),
    "MIME-Version: 1.0",
  ].join("\r\n");
  return Buffer.from(`${head}\r\n${pick.below(2) === 0 ? ordinary(pick) : part(pick, 0)}\r\n`, "latin1");
}

/** Builds a message as most programs send it. */
function ordinary(pick: Picker): string {
  const [text, html] = [textPart(pick, "plain", "utf-8"), textPart(pick, "html", "utf-8")];
  const body = pick.of([text, html, multi("alternative", "b0", [text, html])]);
  const files = Array.from({ length: pick.below(3) }, () => filePart(pick));
  return files.length === 0 ? body : multi("mixed", "b1", [body, ...files]);
}

function part(pick: Picker, depth: number): string {
  const kinds = depth > 2 ? 3 : 6;
  switch (pick.below(kinds)) {
    case 0:
      return textPart(pick, pick.of(["plain", "html", "calendar", "x-amp-html"]), pick.of(CHARSETS));
    case 1:
    case 2:
      return filePart(pick);
    case 3:
      return `Content-Type: message/rfc822\r\n\r\nFrom: x@y.test\r\nSubject: inner\r\n${part(pick, depth + 1)}`;
    default: {
      const parts = Array.from({ length: 1 + pick.below(3) }, () => part(pick, depth + 1));
      return multi(pick.of(["mixed", "alternative", "related", "report", "x-own"]), `=_${depth} b`, parts);
    }
  }
}

function multi(kind: string, boundary: string, parts: readonly string[]): string {
  const inner = parts.map((one) => `--${boundary}\r\n${one}\r\n`).join("");
  return `Content-Type: multipart/${kind}; boundary="${boundary}"\r\n\r\npreamble\r\n${inner}--${boundary}--`;
}

function textPart(pick: Picker, kind: string, charset: string): string {
  const words = Array.from({ length: 1 + pick.below(12) }, () => pick.of(WORDS)).join(pick.of([" ", "\r\n"]));
  const text =
    kind === "html" ? `<p>${words.replaceAll("<", "")} <a href="https://a.test/${pick.below(9)}">link</a></p>` : words;
  const bytes = bytesIn(charset, text);
  const named = charset === "" ? "" : `; charset=${charset}`;
  return `Content-Type: text/${kind}${named}${kind === "calendar" ? "; method=REQUEST" : ""}\r\n${encoded(pick, bytes, charset === "utf-16le")}`;
}

function bytesIn(charset: string, text: string): Buffer {
  if (charset === "utf-16le") return Buffer.from(text, "utf16le");
  if (charset === "utf-8" || charset === "") return Buffer.from(text);
  return Buffer.from(text.replace(charset === "us-ascii" ? /[^\0-\x7f]/g : /[^\0-\xff]/g, "?"), "latin1");
}

function filePart(pick: Picker): string {
  const bytes = Buffer.from(Array.from({ length: pick.below(400) }, () => pick.below(256)));
  const type = pick.of([
    "application/pdf",
    "image/png",
    'text/csv; charset=utf-8; header="present"',
    "application/octet-stream; x-a=1",
  ]);
  const name = pick.of(['; filename="a.pdf"', "; filename*=utf-8''Z%C3%BCrich.pdf", '; filename="a b.pdf"', ""]);
  const id = pick.below(5) === 0 ? "Content-ID: <logo@x>\r\n" : "";
  return `Content-Type: ${type}\r\n${id}Content-Disposition: ${pick.of(["attachment", "inline", "attachment"])}${name}\r\n${encoded(pick, bytes, true)}`;
}

/** `isBinary`: some of its bytes are no text characters. */
function encoded(pick: Picker, bytes: Buffer, isBinary: boolean): string {
  const way = isBinary ? pick.below(3) : 1 + pick.below(4);
  if (way === 0) return `Content-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64")}`;
  if (way === 1)
    return `Content-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64").replace(/.{60}/g, "$&\r\n")}`;
  const escape = (byte: number) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  if (way === 2) {
    const escaped = Array.from(bytes, (byte) =>
      (byte === 10 || byte === 13) && !isBinary ? String.fromCharCode(byte) : escape(byte),
    ).join("");
    return `Content-Transfer-Encoding: quoted-printable\r\n\r\n${escaped.replace(/(?:=..){20}/g, "$&=\r\n")}`;
  }
  return `Content-Transfer-Encoding: 8bit\r\n\r\n${bytes.toString("latin1")}`;
}
