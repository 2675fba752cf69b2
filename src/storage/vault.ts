import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { ConfigurationError } from "../domain/errors.ts";
import type { Random } from "../domain/random.ts";

/**
 * The place to which a secret belongs. It is authenticated together with the secret, which therefore opens nowhere
 * else.
 */
export interface SecretPlace {
  readonly tenantId: string;
  readonly kind: string;
  readonly field: string;
}

/** A secret to be stored. */
export interface Secret {
  readonly place: SecretPlace;
  readonly text: string;
}

/** A stored secret does not open. The error never contains any part of it. */
export class VaultError extends Error {
  override readonly name = "VaultError";
  constructor(
    /**
     * `malformed`: not written by a vault; `unknown_key`: its key is not configured; `forged`: altered, or moved from
     * elsewhere.
     */
    readonly kind: "malformed" | "unknown_key" | "forged",
    message: string,
  ) {
    super(message);
  }
}

const MASTER_KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const SEALED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]{38,})$/;

interface VaultKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

/**
 * Encrypts stored secrets with AES-256-GCM (NIST SP 800-38D), a random 96-bit IV, and the secret's place as additional
 * authenticated data. A sealed secret is the text `v1.<key id>.<base64url of IV, ciphertext and tag>`.
 *
 * The key is derived from a master key by HKDF-SHA-256 (RFC 5869), so other uses of the master key share no key with this one.
 */
export class Vault {
  private readonly keys: ReadonlyMap<string, VaultKey>;
  private readonly sealing: VaultKey;

  /**
   * @param masterKeys 32 bytes each. The first one encrypts, any of them decrypts.
   * @throws ConfigurationError if there is none or one has another length.
   */
  constructor(
    masterKeys: readonly Uint8Array[],
    private readonly random: Random,
  ) {
    const [first, ...others] = masterKeys.map(deriveKey);
    if (first === undefined)
      throw new ConfigurationError("MASTER_KEY must hold at least one key of 32 bytes in base64.");
    this.sealing = first;
    // The first key goes last, so it wins if it is listed twice.
    this.keys = new Map([...others, first].map((key) => [key.id, key]));
  }

  /** The key id, which is the second part of a sealed secret. */
  get sealingKeyId(): string {
    return this.sealing.id;
  }

  seal(place: SecretPlace, plaintext: string): string {
    const iv = this.random.fill(new Uint8Array(IV_BYTES));
    const cipher = createCipheriv("aes-256-gcm", this.sealing.secret, iv);
    cipher.setAAD(placeBytes(place));
    const sealed = Buffer.concat([iv, cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `v1.${this.sealing.id}.${sealed.toString("base64url")}`;
  }

  /** @throws VaultError when the secret does not open here. */
  open(place: SecretPlace, sealed: string): string {
    const [, keyId, body] = SEALED.exec(sealed) ?? [];
    if (keyId === undefined || body === undefined) {
      throw new VaultError("malformed", `The stored ${described(place)} is not a sealed secret.`);
    }
    const key = this.keys.get(keyId);
    if (key === undefined) {
      throw new VaultError(
        "unknown_key",
        `The stored ${described(place)} needs master key ${keyId}, which is not in MASTER_KEY.`,
      );
    }
    const bytes = Buffer.from(body, "base64url");
    const decipher = createDecipheriv("aes-256-gcm", key.secret, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(placeBytes(place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const opened = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
    try {
      return Buffer.concat([opened, decipher.final()]).toString("utf8");
    } catch {
      // `final` fails only on the tag. Its message about the bytes must not be shown.
      throw new VaultError("forged", `The stored ${described(place)} was altered or belongs elsewhere.`);
    }
  }

  /** @throws ConfigurationError that names the missing ones of `keyIds` (the second part of a sealed secret). */
  requireKeys(keyIds: readonly string[]): void {
    const missing = keyIds.filter((id) => !this.keys.has(id));
    if (missing.length === 0) return;
    throw new ConfigurationError(
      `Stored credentials are encrypted with master key ${missing.join(", ")}, which is not in MASTER_KEY: add it after the current key.`,
    );
  }
}

/** Returns the id of a master key, which identifies the key and does not reveal it. */
export function masterKeyId(master: Uint8Array): string {
  return deriveKey(master).id;
}

function deriveKey(master: Uint8Array): VaultKey {
  if (master.length !== MASTER_KEY_BYTES) {
    throw new ConfigurationError(
      `Every key in MASTER_KEY must have ${MASTER_KEY_BYTES} bytes; one has ${master.length}.`,
    );
  }
  const derive = (info: string, bytes: number) => new Uint8Array(hkdfSync("sha256", master, "", info, bytes));
  return {
    id: Buffer.from(derive("waybill vault key id", 4)).toString("hex"),
    secret: derive("waybill vault key", 32),
  };
}

/**
 * Encodes a place. No part can contain the separator: tenants are slugs, and we choose the names of kinds and fields.
 */
function placeBytes({ tenantId, kind, field }: SecretPlace): Buffer {
  return Buffer.from(`${tenantId}|${kind}|${field}`, "utf8");
}

function described({ tenantId, kind, field }: SecretPlace): string {
  return `${kind} ${field} of tenant ${tenantId}`;
}
