import { describe, expect, test } from "bun:test";
import { Vault, VaultError } from "../../src/storage/vault.ts";
import { machineRandom } from "../tenants/machine.ts";

const KEY = new Uint8Array(32).fill(1);
const OTHER_KEY = new Uint8Array(32).fill(2);
const PLACE = { tenantId: "acme", kind: "email", field: "credentials" };
const SECRET = "a secret: pässwörd 🦊";

const createVault = (...keys: Uint8Array[]) => new Vault(keys, machineRandom);

describe("the vault", () => {
  test.each([SECRET, "", "x".repeat(100_000)])("opens what it sealed", (secret) => {
    const vault = createVault(KEY);
    expect(vault.open(PLACE, vault.seal(PLACE, secret))).toBe(secret);
  });

  test("a sealed secret reveals nothing, and no two are alike", () => {
    const vault = createVault(KEY);
    const [one, two] = [vault.seal(PLACE, SECRET), vault.seal(PLACE, SECRET)];
    expect(one).not.toBe(two);
    expect(one).not.toContain(SECRET);
    expect(Buffer.from(one.split(".")[2] ?? "", "base64url").includes(SECRET)).toBe(false);
  });

  test.each([
    ["tenant", { ...PLACE, tenantId: "other" }],
    ["kind", { ...PLACE, kind: "google" }],
    ["field", { ...PLACE, field: "token" }],
  ])("a secret that was moved to another %s cannot be opened", (_, elsewhere) => {
    const vault = createVault(KEY);
    expect(failure(() => vault.open(elsewhere, vault.seal(PLACE, SECRET)))).toBe("forged");
  });

  test("a sealed secret with any bit flipped cannot be opened", () => {
    const vault = createVault(KEY);
    const [version, keyId, body = ""] = vault.seal(PLACE, SECRET).split(".");
    const bytes = Buffer.from(body, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const altered = Buffer.from(bytes);
      altered.writeUInt8((altered[bit >> 3] ?? 0) ^ (1 << (bit & 7)), bit >> 3);
      expect(failure(() => vault.open(PLACE, `${version}.${keyId}.${altered.toString("base64url")}`))).toBe("forged");
    }
  });

  test("a sealed secret cannot be cut short or replaced by anything else", () => {
    const vault = createVault(KEY);
    const sealed = vault.seal(PLACE, SECRET);
    expect(failure(() => vault.open(PLACE, sealed.slice(0, -8)))).toBe("forged");
    for (const text of ["", SECRET, sealed.slice(0, 20), `v2${sealed.slice(2)}`]) {
      expect(failure(() => vault.open(PLACE, text))).toBe("malformed");
    }
  });

  test("after a rotation the first key seals and every given key opens", () => {
    const before = createVault(KEY).seal(PLACE, SECRET);
    const rotated = createVault(OTHER_KEY, KEY);
    expect(rotated.open(PLACE, before)).toBe(SECRET);
    expect(createVault(OTHER_KEY).open(PLACE, rotated.seal(PLACE, SECRET))).toBe(SECRET);
  });

  test("a secret whose key is not given is refused, and the message says which secret and which key", () => {
    const sealed = createVault(KEY).seal(PLACE, SECRET);
    const [, keyId = "none"] = sealed.split(".");
    const vault = createVault(OTHER_KEY);
    expect(failure(() => vault.open(PLACE, sealed))).toBe("unknown_key");
    expect(() => vault.open(PLACE, sealed)).toThrow(keyId);
    expect(() => vault.open(PLACE, sealed)).toThrow("tenant acme");
    expect(() => vault.requireKeys([keyId])).toThrow(keyId);
    expect(() => createVault(OTHER_KEY, KEY).requireKeys([keyId])).not.toThrow();
  });

  test("keys of another length, or none, are refused", () => {
    expect(() => createVault()).toThrow("MASTER_KEY");
    expect(() => createVault(KEY, new Uint8Array(16))).toThrow("32 bytes");
  });
});

/** Returns the kind of error with which `open` fails; the error must not contain the secret. */
function failure(open: () => string): string {
  try {
    return `opened: ${open()}`;
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    expect(String(error.message)).not.toContain(SECRET);
    return error.kind;
  }
}
