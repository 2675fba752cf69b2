import { createPrivateKey, hash, type KeyObject, sign } from "node:crypto";
import { foldLines } from "nodemailer/lib/mime-funcs";
import type { VerifiedDomain } from "../../../core/domain.ts";

/** A header field: its name, and what follows the colon, folded as it is sent. */
export type HeaderField = readonly [name: string, lines: string];

type SigningKey = NonNullable<VerifiedDomain["relay"]>;

/**
 * The header fields that a signature covers where they are there (RFC 6376, 5.4.1). List-Unsubscribe-Post is among them
 * because RFC 8058, 3.1 wants it to be covered.
 */
const SIGNED_FIELDS = [
  "from",
  "reply-to",
  "subject",
  "date",
  "message-id",
  "to",
  "cc",
  "mime-version",
  "content-type",
  "content-transfer-encoding",
  "list-unsubscribe",
  "list-unsubscribe-post",
  "feedback-id",
];

/**
 * The DKIM-Signature of a message (rsa-sha256, relaxed/relaxed), with a line end behind it. RSA-2048 takes more than half a
 * millisecond, on a thread of its own; the message goes nowhere meanwhile. Rejects where the key does not work.
 */
export async function dkimSignature(
  fields: readonly HeaderField[],
  body: string,
  { domain, key }: { readonly domain: string; readonly key: SigningKey },
): Promise<string> {
  const covered = SIGNED_FIELDS.flatMap((name) => fields.filter((field) => field[0].toLowerCase() === name));
  const tags = [
    "v=1",
    "a=rsa-sha256",
    "c=relaxed/relaxed",
    `d=${domain}`,
    "q=dns/txt",
    `s=${key.selector}`,
    `bh=${hash("sha256", relaxedBody(body), "base64")}`,
    `h=${covered.map(([name]) => name.toLowerCase()).join(":")}`,
  ];
  const unsigned = `${foldLines(`DKIM-Signature: ${tags.join("; ")}`, LINE_MAX)};\r\n b=`;
  const colon = unsigned.indexOf(":");
  const lines = [...covered, ["dkim-signature", unsigned.slice(colon + 1)] as const].map(relaxedField);
  const signature = await signed(Buffer.from(lines.join("\r\n"), "utf8"), parsedKey(key));
  return `${unsigned}${signature.replace(/(.{73})(?=.)/g, "$1\r\n ")}\r\n`;
}

const LINE_MAX = 76;

/** By what a snapshot of the domain holds, and as long as it: parsing a key takes a tenth of a signature. */
const parsedKeys = new WeakMap<SigningKey, KeyObject>();

function parsedKey(key: SigningKey): KeyObject {
  let parsed = parsedKeys.get(key);
  if (parsed === undefined) {
    parsed = createPrivateKey(key.privateKeyPem);
    parsedKeys.set(key, parsed);
  }
  return parsed;
}

function signed(bytes: Uint8Array, key: KeyObject): Promise<string> {
  return new Promise((resolve, reject) => {
    sign("sha256", bytes, key, (error, signature) => {
      if (error) reject(error);
      else resolve(signature.toString("base64"));
    });
  });
}

/** RFC 6376, 3.4.2. */
function relaxedField([name, lines]: HeaderField): string {
  const value = lines.replaceAll("\r\n", "").replace(/[ \t]+/g, " ");
  return `${name.toLowerCase()}:${value.replace(/^ | $/g, "")}`;
}

/** RFC 6376, 3.4.4, of a body whose lines are short and end with CRLF. */
function relaxedBody(body: string): string {
  const relaxed = TO_RELAX.test(body) ? body.replace(/[ \t]+\r\n/g, "\r\n").replace(/[ \t]{2,}|\t/g, " ") : body;
  let end = relaxed.length;
  while (relaxed.startsWith("\r\n", end - 2)) end -= 2;
  return end === 0 ? "" : relaxed.slice(0, end + 2);
}

const TO_RELAX = /[ \t][ \t\r]|\t/;
