import { generateKeyPair } from "node:crypto";

export interface DkimKey {
  /** SubjectPublicKeyInfo, DER in base64: the `p=` of its record. */
  readonly publicKey: string;
  /** PKCS #8, PEM. */
  readonly privateKeyPem: string;
}

/** Signers should use 2048 bits (RFC 8301, 3.2), and verifiers need not take more. */
const RSA_BITS = 2048;

/** Makes an RSA key pair in the runtime's thread pool: it takes a good part of a second, and the event loop goes on. */
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
