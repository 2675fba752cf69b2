import { createHash, createPrivateKey, hash, type KeyObject, sign } from "node:crypto";
import { foldLines } from "nodemailer/lib/mime-funcs";
import type { VerifiedDomain } from "../../../domain/channels/domain.ts";
import type { MessageRest } from "./message-rest.ts";

/** A header field: its name, and the text after the colon, folded as sent. */
export type HeaderField = readonly [name: string, lines: string];

type SigningKey = NonNullable<VerifiedDomain["relay"]>;

/**
 * The header fields that a signature covers if present (RFC 6376, 5.4.1). List-Unsubscribe-Post is among them because
 * RFC 8058, 3.1 requires it.
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
 * Creates the DKIM-Signature of a message (rsa-sha256, relaxed/relaxed), with a line end. RSA-2048 takes more than half
 * a millisecond, on a separate thread, while the message waits. Rejects if the key is unusable.
 */
export async function dkimSignature(
  fields: readonly HeaderField[],
  body: string | SignedBody,
  { domain, key }: { readonly domain: string; readonly key: SigningKey },
): Promise<string> {
  // No field occurs twice.
  const linesByName = new Map(fields.map(([name, lines]) => [name.toLowerCase(), lines]));
  const covered = SIGNED_FIELDS.filter((name) => linesByName.has(name));
  const bodyHash = await hashBody(typeof body === "string" ? { text: body } : body);
  const tags = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain}; q=dns/txt; s=${key.selector}; bh=${bodyHash}`;
  const unsigned = `${foldLines(`DKIM-Signature: ${tags}; h=${covered.join(":")}`, LINE_MAX)};\r\n b=`;
  let canonical = "";
  for (const name of covered) canonical += `${relaxedField(name, linesByName.get(name) ?? "")}\r\n`;
  canonical += relaxedField("dkim-signature", unsigned.slice("DKIM-Signature:".length));
  const signature = await signed(Buffer.from(canonical, "utf8"), parsedKey(key));
  let lines = unsigned;
  for (let at = 0; at < signature.length; at += SIGNATURE_LINE) {
    lines += `${at === 0 ? "" : "\r\n "}${signature.slice(at, at + SIGNATURE_LINE)}`;
  }
  return `${lines}\r\n`;
}

/** A body's text, and the rest after it. */
export interface SignedBody {
  readonly text: string;
  readonly rest?: MessageRest | undefined;
}

/** Hashes a long body in steps, between which other work runs. */
async function hashBody({ text, rest }: SignedBody): Promise<string> {
  if (rest === undefined) return hash("sha256", relaxedBody(text), "base64");
  const digest = createHash("sha256").update(relaxedLines(text));
  let chunks = 0;
  // Its pieces begin and end with whole lines or line ends, and the last one ends the body: each is canonical by itself.
  for (const chunk of rest.chunks(relaxedLines)) {
    digest.update(chunk);
    chunks += 1;
    if (chunks % CHUNKS_PER_TURN === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return digest.digest("base64");
}

/** About a megabyte: a few milliseconds. */
const CHUNKS_PER_TURN = 16;

const LINE_MAX = 76;
const SIGNATURE_LINE = 72;

/**
 * Cached per key object of the domain's snapshot, for as long as that exists: parsing a key takes a tenth of the time
 * of a signature.
 */
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

/** Canonicalises a header field (RFC 6376, 3.4.2). */
function relaxedField(name: string, lines: string): string {
  const value = lines.replaceAll("\r\n", "").replace(/[ \t]+/g, " ");
  return `${name}:${value.replace(/^ | $/g, "")}`;
}

/** Canonicalises a body (RFC 6376, 3.4.4) that has short lines which end with CRLF. */
function relaxedBody(body: string): string {
  const relaxed = relaxedLines(body);
  let end = relaxed.length;
  while (relaxed.startsWith("\r\n", end - 2)) end -= 2;
  return end === 0 ? "" : relaxed.slice(0, end + 2);
}

function relaxedLines(body: string): string {
  return TO_RELAX.test(body) ? body.replace(/[ \t]+\r\n/g, "\r\n").replace(/[ \t]{2,}|\t/g, " ") : body;
}

const TO_RELAX = /[ \t][ \t\r]|\t/;
