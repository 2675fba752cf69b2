import { generateKeyPairSync } from "node:crypto";
import type { VerifiedDomain } from "../../src/domain/channels/domain.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "der" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});

/** Selector of the key that signs for every domain of `verified`, and the record of that key. */
export const TEST_SELECTOR = "wbtest";
export const TEST_KEY_RECORD = `v=DKIM1; k=rsa; p=${publicKey.toString("base64")}`;

/** A tenant's domains: these, verified for the platform's relay. */
export function verified(...names: readonly string[]): ReadonlyMap<string, VerifiedDomain> {
  return new Map(
    names.map((domain) => {
      const relay = { selector: TEST_SELECTOR, privateKeyPem: privateKey, returnPathHost: `bounce.${domain}` };
      return [domain, { domain, relay, smtp: false }];
    }),
  );
}
