import { createPublicKey, type KeyObject, verify } from "node:crypto";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  parseJsonObject,
  toNumber,
} from "../../../../domain/texts/json.ts";

/** A root key of Google's, with which it signs the keys that sign callbacks. */
export interface RootKey {
  readonly key: KeyObject;
  /** Unix ms. */
  readonly endsMs: number;
}

/** A callback's content: a person has saved the object, or removed it. */
export interface GoogleCallback {
  readonly issuerId: string;
  readonly classId: string;
  readonly objectId: string;
  /** `save` or `del`, or a value that Google has added since. */
  readonly event: string;
  /** Unchanged if Google repeats the callback. */
  readonly nonce: string;
  /** The end of its validity (Unix ms). */
  readonly endsMs: number;
}

export type ReadCallback =
  | { readonly kind: "signed"; readonly callback: GoogleCallback }
  /** The body is no message of the protocol. */
  | { readonly kind: "malformed"; readonly why: string }
  /** `isOfOtherRoot`: none of the root keys signed its key, so there may be newer ones. */
  | { readonly kind: "unsigned"; readonly why: string; readonly isOfOtherRoot?: true };

/** Google's guide "Use callbacks for saves and deletions", and Tink's `PaymentMethodTokenRecipient`. */
export const CALLBACK_PROTOCOL = "ECv2SigningOnly";
const SENDER = "GooglePayPasses";
const SIGNATURES_MAX = 4;
const ID = /^(\d{1,20})\.[A-Za-z0-9._-]{1,200}$/;
const NONCE_CHARS_MAX = 255;
const STORABLE_MS_MAX = Date.UTC(9999, 0);

/**
 * Reads a callback and verifies its signatures and recipient: a root key signs the key in the callback, which signs the
 * message for the issuer of its object.
 */
export function readSignedCallback(body: JsonObject, roots: readonly RootKey[], nowMs: number): ReadCallback {
  const { protocolVersion, signature, signedMessage, intermediateSigningKey } = body;
  const { signedKey, signatures } = toObject(intermediateSigningKey);
  if (protocolVersion !== CALLBACK_PROTOCOL) return malformed(`protocolVersion must be ${CALLBACK_PROTOCOL}`);
  if (typeof signature !== "string") return malformed("signature must be a string");
  if (typeof signedMessage !== "string") return malformed("signedMessage must be a string");
  if (typeof signedKey !== "string") return malformed("intermediateSigningKey.signedKey must be a string");
  if (!isJsonArray(signatures)) return malformed("intermediateSigningKey.signatures must be a list");
  const callback = callbackIn(signedMessage);
  if (typeof callback === "string") return malformed(callback);
  const { keyValue, keyExpiration } = parseJsonObject(signedKey) ?? {};
  const key = typeof keyValue === "string" ? parsePublicKey(keyValue) : null;
  const endsMs = parseTime(keyExpiration);
  if (key === null || endsMs === null) return malformed("intermediateSigningKey.signedKey holds no key");

  const ofKey = signedBytes(SENDER, CALLBACK_PROTOCOL, signedKey);
  const isOfRoot = signatures
    .slice(0, SIGNATURES_MAX)
    .some((each) => roots.some((root) => root.endsMs > nowMs && isSigned(ofKey, root.key, each)));
  if (!isOfRoot) return { kind: "unsigned", why: "no root key of Google's signed its key", isOfOtherRoot: true };
  if (endsMs <= nowMs) return { kind: "unsigned", why: "the key that signed it has expired" };
  const ofMessage = signedBytes(SENDER, callback.issuerId, CALLBACK_PROTOCOL, signedMessage);
  if (!isSigned(ofMessage, key, signature)) {
    return { kind: "unsigned", why: "its signature is not for this message and the issuer of its object" };
  }
  if (callback.endsMs <= nowMs) return { kind: "unsigned", why: "it has expired" };
  return { kind: "signed", callback };
}

/**
 * Parses the root keys from the answer of Google's address for them: `{"keys": [{keyValue, protocolVersion,
 * keyExpiration}]}`.
 */
export function rootKeysIn(text: string): readonly RootKey[] {
  const { keys } = parseJsonObject(text) ?? {};
  return (isJsonArray(keys) ? keys.slice(0, ROOTS_MAX) : []).flatMap((each): readonly RootKey[] => {
    const { keyValue, protocolVersion = CALLBACK_PROTOCOL, keyExpiration } = toObject(each);
    const key = typeof keyValue === "string" && protocolVersion === CALLBACK_PROTOCOL ? parsePublicKey(keyValue) : null;
    // Google's keys for test payments have no end.
    const endsMs = keyExpiration === undefined ? Number.POSITIVE_INFINITY : parseTime(keyExpiration);
    return key === null || endsMs === null ? [] : [{ key, endsMs }];
  });
}

const ROOTS_MAX = 8;

/** Builds the signed bytes: each part in UTF-8, after its length in bytes (four, little-endian). */
export function signedBytes(...parts: readonly string[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
}

/** Parses the message, or returns the reason why it is invalid. */
function callbackIn(signedMessage: string): GoogleCallback | string {
  const { classId, objectId, eventType, nonce, expTimeMillis } = parseJsonObject(signedMessage) ?? {};
  const [, issuerId] = typeof objectId === "string" ? (ID.exec(objectId) ?? []) : [];
  if (typeof objectId !== "string" || issuerId === undefined) return "signedMessage names no object";
  if (typeof classId !== "string" || !classId.startsWith(`${issuerId}.`)) return "signedMessage names no class";
  if (typeof eventType !== "string" || eventType === "") return "signedMessage names no event";
  if (typeof nonce !== "string" || nonce === "" || nonce.length > NONCE_CHARS_MAX) return "signedMessage has no nonce";
  const endsMs = parseTime(expTimeMillis);
  if (endsMs === null) return "signedMessage has no end";
  return { issuerId, classId, objectId, event: eventType, nonce, endsMs: Math.min(endsMs, STORABLE_MS_MAX) };
}

/** Verifies ECDSA with SHA-256; the signature is DER in base64. */
function isSigned(bytes: Buffer, key: KeyObject, signature: Json): boolean {
  if (typeof signature !== "string") return false;
  try {
    return verify("sha256", bytes, key, Buffer.from(signature, "base64"));
  } catch {
    return false;
  }
}

/** Parses a public key for P-256 (SubjectPublicKeyInfo in base64); null if invalid. */
function parsePublicKey(text: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(text, "base64"), format: "der", type: "spki" });
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? key : null;
  } catch {
    return null;
  }
}

/** Parses Unix milliseconds, which Google writes as a number or as text. */
function parseTime(value: Json | undefined): number | null {
  if (typeof value === "string") return /^\d{1,15}$/.test(value) ? Number(value) : null;
  const ms = toNumber(value);
  return ms !== null && Number.isSafeInteger(ms) && ms >= 0 ? ms : null;
}

function toObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function malformed(why: string): ReadCallback {
  return { kind: "malformed", why };
}
