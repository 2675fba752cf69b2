import type { Idempotency } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import { ApiError } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";

/** Reads the idempotency key of a request whose body has been parsed. Throws an `ApiError` 400. */
export function readIdempotency({ request }: Exchange, scope: string, body: unknown): Idempotency | null {
  return under(readIdempotencyKey(request), scope, JSON.stringify(body));
}

/** The body's bytes under the key. */
export function under(key: string | null, scope: string, body: Uint8Array | string): Idempotency | null {
  if (key === null) return null;
  const fingerprint = new Bun.CryptoHasher("sha256").update(`${scope}\n`).update(body).digest("base64url");
  return { key, fingerprint };
}

const IDEMPOTENCY_KEY = new RegExp(`^[\\x20-\\x7e]{1,${limits.idempotencyKeyCharsMax}}$`);

export function isIdempotencyKey(text: string): boolean {
  return IDEMPOTENCY_KEY.test(text);
}

/** Throws an `ApiError` 400. */
export function readIdempotencyKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key === null || isIdempotencyKey(key)) return key;
  throw new ApiError(
    "invalid_idempotency_key",
    `the Idempotency-Key must be 1 to ${limits.idempotencyKeyCharsMax} printable ASCII characters`,
  );
}
