import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { Clock } from "../../../domain/clock.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { CALLBACK_PROTOCOL, signedBytes } from "../google/callbacks/signed-callback.ts";

/** Deviations from Google's own signature. */
export interface Forgery {
  /** Default: the issuer of the object. */
  readonly recipient?: string;
  /** Expiry of the key that signs the message (Unix ms). */
  readonly keyEndsMs?: number;
  /** Default: the root key that the sandbox serves. */
  readonly root?: KeyObject;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const KEY_MS = 7 * DAY_MS;
const ROOT_MS = 365 * DAY_MS;

/** Signs callbacks as Google does (`ECv2SigningOnly`): a root key signs an intermediate key, which signs the message. */
export class GoogleCallbackSigner {
  private root = newKey();
  private readonly intermediate = newKey();

  constructor(private readonly clock: Pick<Clock, "nowMs">) {}

  /** Returns the answer of Google's address for its keys. */
  keys(): JsonObject {
    const keyExpiration = String(this.clock.nowMs() + ROOT_MS);
    return { keys: [{ keyValue: exportKey(this.root.publicKey), protocolVersion: CALLBACK_PROTOCOL, keyExpiration }] };
  }

  /** Replaces the root key; the former one is no longer served. */
  rotate(): void {
    this.root = newKey();
  }

  sign(message: JsonObject, { recipient, keyEndsMs, root }: Forgery = {}): JsonObject {
    const keyExpiration = String(keyEndsMs ?? this.clock.nowMs() + KEY_MS);
    const signedKey = JSON.stringify({ keyValue: exportKey(this.intermediate.publicKey), keyExpiration });
    const signedMessage = JSON.stringify(message);
    const to = recipient ?? String(message["objectId"]).replace(/\..*$/, "");
    const ofMessage = signedBytes(SENDER, to, CALLBACK_PROTOCOL, signedMessage);
    const ofKey = signedBytes(SENDER, CALLBACK_PROTOCOL, signedKey);
    return {
      signature: sign("sha256", ofMessage, this.intermediate.privateKey).toString("base64"),
      intermediateSigningKey: {
        signedKey,
        signatures: [sign("sha256", ofKey, root ?? this.root.privateKey).toString("base64")],
      },
      protocolVersion: CALLBACK_PROTOCOL,
      signedMessage,
    };
  }
}

const SENDER = "GooglePayPasses";

function newKey() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function exportKey(key: KeyObject): string {
  return key.export({ type: "spki", format: "der" }).toString("base64");
}
