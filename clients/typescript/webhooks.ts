/** The call is not from the service, was changed on its way, or is too old. Answer 400 and ignore the call. */
export class InvalidWebhook extends Error {
  override readonly name = "InvalidWebhook";
}

/** The secret is malformed, perhaps because an environment variable is not set. The call was not verified. */
export class InvalidSecret extends TypeError {
  override readonly name = "InvalidSecret";
}

export interface VerifyOptions {
  /** How far `webhook-timestamp` may be from now, in seconds; 300 by default. */
  readonly toleranceSeconds?: number;
  /** Unix milliseconds; by default now. */
  readonly nowMs?: number;
}

const TOLERANCE_SECONDS = 5 * 60;
/** The minimum of Standard Webhooks 1.0.0, which requires 24 to 64; with less, calls could be forged. */
const SECRET_BYTES_MIN = 24;

/**
 * Returns the events of a webhook call: an object, or a list if the endpoint receives several at once. Rejects with
 * `InvalidWebhook` (Standard Webhooks 1.0.0), or with `InvalidSecret` if a secret is empty or malformed.
 *
 * `body`: exactly the received text. `secret`: `whsec_…`, or several during a rotation. A repeated call has the same
 * `webhook-id`: remember it, and handle each event once.
 */
export async function verifyWebhook(
  body: string,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  secret: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, nowMs = Date.now() }: VerifyOptions = {},
): Promise<unknown> {
  const secrets = typeof secret === "string" ? [secret] : (secret ?? []);
  if (secrets.length === 0) throw new InvalidSecret("no secret was given");
  const keys = await Promise.all(secrets.map(importKey));
  const given = headers instanceof Headers ? headers : toHeaders(headers);
  const [id, sent, signatures] = ["id", "timestamp", "signature"].map((name) => given.get(`webhook-${name}`) ?? "");
  if (!id || !signatures) {
    throw new InvalidWebhook("the headers webhook-id, webhook-timestamp and webhook-signature are needed");
  }
  if (!sent || !/^\d{1,15}$/.test(sent)) throw new InvalidWebhook("webhook-timestamp is not a time");
  if (Math.abs(nowMs / 1000 - Number(sent)) > toleranceSeconds) {
    throw new InvalidWebhook("webhook-timestamp is too far from now: an old call, or a clock that is wrong");
  }
  const signed = new TextEncoder().encode(`${id}.${sent}.${body}`);
  const found = signatures.split(" ").flatMap((part) => (part.startsWith("v1,") ? [part.slice("v1,".length)] : []));
  const fits = await Promise.all(keys.flatMap((key) => found.map((signature) => isSignedBy(key, signature, signed))));
  if (!fits.includes(true)) throw new InvalidWebhook("no signature fits the body and the secret");
  return JSON.parse(body);
}

function toHeaders(given: Readonly<Record<string, string | readonly string[] | undefined>>): Headers {
  const present = Object.entries(given).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, typeof value === "string" ? value : value.join(", ")]],
  );
  return new Headers(present);
}

async function importKey(secret: string): Promise<CryptoKey> {
  const bytes = typeof secret === "string" ? decodeBase64(secret.replace(/^whsec_/, "")) : null;
  if (bytes === null || bytes.length < SECRET_BYTES_MIN) {
    throw new InvalidSecret(`a secret is "whsec_" and the base64 of at least ${SECRET_BYTES_MIN} bytes`);
  }
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

/** Compares in constant time. */
async function isSignedBy(key: CryptoKey, signature: string, signed: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const bytes = decodeBase64(signature);
  return bytes !== null && crypto.subtle.verify("HMAC", key, bytes, signed);
}

/** Null: it is not base64. */
function decodeBase64(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}
