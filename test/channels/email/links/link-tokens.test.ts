import { describe, expect, test } from "bun:test";
import { createCipheriv, createHmac, hkdfSync } from "node:crypto";
import fc from "fast-check";
import { type Link, type LinkPurpose, LinkTokens } from "../../../../src/channels/email/links/link-tokens.ts";
import { JobIds } from "../../../../src/domain/ids.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";

const createKey = (byte: number) => new Uint8Array(32).fill(byte);
const OLD = createKey(1);
const NEW = createKey(2);
const FOREIGN = createKey(3);
const PURPOSES: readonly LinkPurpose[] = ["open", "click", "unsubscribe"];
const tokens = new LinkTokens([NEW, OLD]);
const ids = new JobIds(systemClock, systemRandom);

const tenantId = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const jobId = fc.constant(null).map(() => ids.next());
const link: fc.Arbitrary<Link> = fc.oneof(
  fc.record({ purpose: fc.constant("open" as const), tenantId, jobId }),
  fc.record({ purpose: fc.constant("click" as const), tenantId, jobId, url: fc.webUrl() }),
  fc.record({ purpose: fc.constant("unsubscribe" as const), tenantId, jobId, recipient: fc.emailAddress() }),
);

describe("a token", () => {
  test("gives back the very link that was signed, also after the key was rotated", () => {
    fc.assert(
      fc.property(link, (signed) => {
        expect(tokens.read(signed.purpose, tokens.sign(signed))).toEqual(signed);
        expect(tokens.read(signed.purpose, new LinkTokens([OLD]).sign(signed))).toEqual(signed);
        expect(tokens.sign(signed)).toBe(new LinkTokens([NEW]).sign(signed));
      }),
    );
  });

  test("is none with any one character changed, added or left out", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    fc.assert(
      fc.property(link, (signed) => {
        const token = tokens.sign(signed);
        for (let at = 0; at < token.length; at += 1) {
          const others = at === token.length - 1 ? alphabet : alphabet[(alphabet.indexOf(token.charAt(at)) + 1) % 64];
          for (const other of others ?? "") {
            if (other === token.charAt(at)) continue;
            expect(tokens.read(signed.purpose, token.slice(0, at) + other + token.slice(at + 1))).toBeNull();
          }
          expect(tokens.read(signed.purpose, token.slice(0, at) + token.slice(at + 1))).toBeNull();
        }
        for (const more of ["A", "=", " ", "\n"]) expect(tokens.read(signed.purpose, token + more)).toBeNull();
      }),
      { numRuns: 20 },
    );
  });

  test("is none for another purpose, and none under a foreign key", () => {
    fc.assert(
      fc.property(link, (signed) => {
        const token = tokens.sign(signed);
        for (const purpose of PURPOSES) {
          if (purpose !== signed.purpose) expect(tokens.read(purpose, token)).toBeNull();
          expect(new LinkTokens([FOREIGN]).read(purpose, token)).toBeNull();
        }
      }),
    );
  });

  test("is not to be had from what is no token, however long", () => {
    const hostile = [
      "",
      "A",
      "A".repeat(43),
      "A".repeat(100_000),
      "../../etc/passwd",
      "%00",
      "é".repeat(50),
      "\0".repeat(60),
    ];
    for (const text of hostile) for (const purpose of PURPOSES) expect(tokens.read(purpose, text)).toBeNull();
    fc.assert(fc.property(fc.base64String(), (text) => tokens.read("click", text) === null));
  });

  test("shows nobody the address that it carries", () => {
    const recipient = "ann@example.com";
    const token = tokens.sign({ purpose: "unsubscribe", tenantId: "acme", jobId: ids.next(), recipient });
    expect(Buffer.from(token, "base64url").toString("latin1")).not.toContain("ann");
    expect(token.length).toBeLessThan(80);
  });
});

test("link tokens need keys of 32 bytes", () => {
  expect(() => new LinkTokens([])).toThrow(TypeError);
  expect(() => new LinkTokens([NEW, new Uint8Array(31)])).toThrow(TypeError);
});

test("a token is what node:crypto's own HMAC and counter mode make, so links in mail of long ago still lead somewhere", () => {
  fc.assert(
    fc.property(link, fc.uint8Array({ minLength: 32, maxLength: 32 }), (signed, master) => {
      const keys = Buffer.from(hkdfSync("sha256", master, "", `waybill link v1 ${signed.purpose}`, 64));
      const rest = signed.purpose === "click" ? signed.url : signed.purpose === "open" ? "" : signed.recipient;
      const job = Buffer.from(signed.jobId.replaceAll("-", ""), "hex");
      const tenant = Buffer.from(signed.tenantId, "latin1");
      const content = Buffer.concat([job, Uint8Array.of(tenant.length), tenant, Buffer.from(rest)]);
      const tag = createHmac("sha256", keys.subarray(0, 32)).update(content).digest().subarray(0, 16);
      const cipher = createCipheriv("aes-256-ctr", keys.subarray(32), tag);
      const token = Buffer.concat([tag, cipher.update(content), cipher.final()]).toString("base64url");
      expect(new LinkTokens([master]).sign(signed)).toBe(token);
    }),
    { numRuns: 500 },
  );
});
