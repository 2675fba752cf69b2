import type { StoredPayload } from "../../domain/job.ts";

/** Names a payload by its content. */
export function nameOfPayload(payload: Uint8Array): StoredPayload {
  return { sha256: new Bun.CryptoHasher("sha256").update(payload).digest("hex"), bytes: payload.length };
}
