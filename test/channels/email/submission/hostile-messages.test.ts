import { expect, test } from "bun:test";
import { decodeHeader } from "../../../../src/channels/email/submission/header-values.ts";
import { SmtpRefusal } from "../../../../src/channels/email/submission/smtp-refusal.ts";
import { FROM, inBase64, KIB, MIB, mixed, read } from "./messages.ts";

/** Without care, the first ones of these take from seconds to minutes. */
const ENOUGH_MS = 3_000;

/** Processor time: the machine may have other work. */
async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const fill = (unit: string, size: number) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);

const TEXT = "Content-Type: text/plain\r\n\r\nHi";
const [headersMost, textMost, most] = [250 * KIB, 1.2 * MIB, 13.9 * MIB];
const header = (head: string, unit: string) => `${FROM}${head}${fill(unit, headersMost)}\r\n\r\nHi`;
const file = (encoding: string, unit: string) =>
  mixed(TEXT, `Content-Type: a/b\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${fill(unit, most)}`);

/** As large as each is taken. */
const HOSTILE: Readonly<Record<string, () => string>> = {
  "links that never end": () => mixed(TEXT, `Content-Type: text/html\r\n\r\n${fill("<a href=", textMost)}`),
  "one link that never ends": () => mixed(TEXT, `Content-Type: text/html\r\n\r\n<a href=${fill("A", textMost)}`),
  "text that grows as HTML": () => mixed("Content-Type: text/html\r\n\r\nHi", `${TEXT}${fill("<", textMost)}`),
  "base64 that ends at each byte": () => file("base64", "A="),
  "base64 that is none": () => file("base64", "A!"),
  "base64 with padding on each line": () => file("base64", `${"A".repeat(70)}==\r\n`),
  "quoted-printable on one line": () => file("quoted-printable", "=41--b"),
  "quoted-printable that is none": () => file("quoted-printable", "="),
  "a file on one line": () => file("8bit", "--b"),
  "empty lines": () => `${FROM}\r\n${fill("\n", 299_000)}`,
  "lines that flow": () => mixed(inBase64("text/plain; format=flowed", fill("\n", 10 * MIB))),
  "lines that flow, as many as are read": () => mixed(inBase64("text/plain; format=flowed", fill(" \n", 598_000))),
  "a calendar of nothing": () => mixed(inBase64("text/calendar", fill("\r\n", 10 * MIB))),
  "parts without end": () => mixed(fill("\r\n--b\r\n", 60 * KIB)),
  "parts in parts, behind long lines": () => {
    const inner = fill("--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n", 900);
    return mixed(
      `Content-Type: multipart/mixed; boundary=b\r\n\r\n${inner}${fill(`--b${" ".repeat(1_400)}x\r\n`, most)}`,
    );
  },
  "a subject in words": () => header("Subject: ", "=?a?b?AAAA?="),
  "a subject that never ends": () => header("Subject: ", "=?a?q?"),
  "names in words": () => header("To: ", "=?a?b?AAAA?="),
  "groups in groups": () => header("To: ", "a:"),
  comments: () => header("Content-Type: text/plain", " ("),
  parameters: () => header("Content-Type: text/plain", ";a*1*=1"),
  "a file's name in words": () =>
    header("Content-Disposition: attachment; filename*=utf-8''", "%3D%3Fa%3Fb%3FAAAA%3F%3D"),
  "headers without end": () => `${FROM}${fill("a\n", headersMost)}\r\n\r\nHi`,
  "line ends of other systems": () => `${FROM}\r\n${fill("\r", most)}`,
  "a text of bytes beyond ASCII": () => `${FROM}\r\n${fill("\xfc\r\n", 890_000)}`,
  "braces in text and HTML": () =>
    mixed(`${TEXT}${fill("{{", textMost)}`, `Content-Type: text/html\r\n\r\n${fill("{{.", textMost)}`),
  "messages in messages, each in base64": () => {
    let inner = "From: x@y.test\r\n\r\nHi";
    while (inner.length < 4 * MIB) inner = inBase64("message/rfc822", inner);
    return mixed(inner);
  },
  "signed parts in parts": () =>
    mixed(...Array.from({ length: 9_000 }, () => "Content-Type: multipart/signed; boundary=b\r\n\r\n\xfc")),
  "headers of many parts": () => mixed(...Array.from({ length: 4_000 }, () => `${fill("A:\r\n", 40)}\r\nHi`)),
  "a header that is folded without end": () => header("X-A: ", "\n "),
};

test.each(Object.keys(HOSTILE))(
  "%s: the message is read, or refused, in little time",
  async (name) => {
    const message = HOSTILE[name]?.() ?? "";
    const refused = (error: unknown) => {
      if (!(error instanceof SmtpRefusal)) throw error;
    };
    expect(await cpuMs(async () => read(message).catch(refused))).toBeLessThan(ENOUGH_MS);
  },
  90_000,
);

test("words in a header take time in proportion to their number", async () => {
  const words = "=?a?b?AAAA?=".repeat(200_000);
  expect(await cpuMs(() => decodeHeader(words))).toBeLessThan(ENOUGH_MS);
});
