import { generateKeyPair } from "node:crypto";

export interface DkimKey {
  /** SubjectPublicKeyInfo, DER in base64: the `p=` of the DKIM record. */
  readonly publicKey: string;
  /** PKCS #8, PEM. */
  readonly privateKeyPem: string;
}

/** Signers should use 2048 bits (RFC 8301, 3.2); verifiers need not support longer keys. */
const RSA_BITS = 2048;

/**
 * Generates an RSA key pair in the runtime's thread pool: it takes a large part of a second and does not block the
 * event loop.
 */
export function makeDkimKey(): Promise<DkimKey> {
  return new Promise((resolve, reject) => {
    const encodings = {
      publicKeyEncoding: { type: "spki", format: "der" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    } as const;
    generateKeyPair("rsa", { modulusLength: RSA_BITS, ...encodings }, (error, publicKey, privateKeyPem) => {
      if (error === null) resolve({ publicKey: publicKey.toString("base64"), privateKeyPem });
      else reject(error);
    });
  });
}
