import { createPublicKey } from "node:crypto";

/** Bytes of a SubjectPublicKeyInfo with a point on P-256: uncompressed and compressed. */
const LENGTHS: readonly number[] = [91, 59];

/** Whether the DER is the SubjectPublicKeyInfo of a key on P-256 (RFC 5480, 2). Deterministic. */
export function isP256Key(der: Buffer): boolean {
  if (!LENGTHS.includes(der.length)) return false;
  try {
    return createPublicKey({ key: der, format: "der", type: "spki" }).asymmetricKeyDetails?.namedCurve === "prime256v1";
  } catch {
    // No key, or a point that is not on the curve.
    return false;
  }
}
