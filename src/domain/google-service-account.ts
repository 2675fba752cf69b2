import { isJsonObject } from "./json.ts";
import type { GoogleIssuer } from "./wallet.ts";

/** The account that signs for an issuer. */
export type GoogleServiceAccount = Pick<GoogleIssuer, "clientEmail" | "privateKeyPem">;

/**
 * Reads the JSON key of a service account, as Google's console issues it; null if the value is not one. Does not check
 * whether the key can sign.
 */
export function parseServiceAccount(value: unknown): GoogleServiceAccount | null {
  if (!isJsonObject(value)) return null;
  const { client_email, private_key } = value;
  if (typeof client_email !== "string" || !/^[^\s@]{1,190}@[^\s@]{1,63}$/.test(client_email)) return null;
  if (typeof private_key !== "string" || private_key.length > KEY_CHARS_MAX) return null;
  // In environments and forms, line breaks often stay escaped as in JSON.
  const privateKeyPem = private_key.replaceAll("\\n", "\n").trim();
  const isPem = /^-----BEGIN (?:RSA )?PRIVATE KEY-----\r?\n[\s\S]+\n-----END (?:RSA )?PRIVATE KEY-----$/;
  return isPem.test(privateKeyPem) ? { clientEmail: client_email, privateKeyPem: `${privateKeyPem}\n` } : null;
}

/** An 8192-bit key has some 6,400. */
const KEY_CHARS_MAX = 10_000;
