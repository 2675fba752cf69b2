import { Type } from "@sinclair/typebox";
import type { Clock } from "../../domain/clock.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { CallTurns } from "../../http/call-turns.ts";
import { type Endpoint, endpoint, reply } from "../../http/endpoint.ts";
import { failure } from "../../http/failures.ts";
import { parseJson } from "../../http/parse-json.ts";
import type { DeviceChange } from "./devices/device-webhooks.ts";
import { CALLBACK_PATH, type GoogleCallbacks } from "./google/callbacks/google-callbacks.ts";
import type { GoogleCallback } from "./google/callbacks/signed-callback.ts";
import type { GoogleSaves } from "./google-saves.ts";
import { walletLimits } from "./limits.ts";

export interface GoogleCallbackPorts {
  readonly wallet: { readonly callbacks: Pick<GoogleCallbacks, "open">; readonly saves: Pick<GoogleSaves, "take"> };
  /** Notifies the tenant in the background. */
  readonly passKit: { readonly webhooks: { note(change: DeviceChange): void } };
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log" | "count">;
}

const ACTIONS: ReadonlyMap<string, DeviceChange["action"]> = new Map([
  ["save", "register"],
  ["del", "unregister"],
]);

const UNSIGNED = "the callback is not signed by Google for the issuer of its object, or has expired";
const SignedCallback = Type.Object(
  {
    protocolVersion: Type.Literal("ECv2SigningOnly"),
    signature: Type.String({ description: "Of `signedMessage`, in base64." }),
    intermediateSigningKey: Type.Object(
      { signedKey: Type.String(), signatures: Type.Array(Type.String()) },
      {
        additionalProperties: true,
        description: "The key that signed it, and what Google's root keys say of that key.",
      },
    ),
    signedMessage: Type.String({
      description: "JSON with `classId`, `objectId`, `eventType` (`save` or `del`), `expTimeMillis` and `nonce`.",
    }),
  },
  { $id: "GoogleCallback", additionalProperties: true },
);
const EXAMPLE = {
  protocolVersion: "ECv2SigningOnly" as const,
  signature: "MEUCIQDs3m…",
  intermediateSigningKey: {
    signedKey: '{"keyValue":"MFkwEwYHKoZI…","keyExpiration":"1796083200000"}',
    signatures: ["MEQCIB7k…"],
  },
  signedMessage:
    '{"classId":"3388000000012345678.final","objectId":"3388000000012345678.ticket-1","eventType":"save",' +
    '"expTimeMillis":1796083200000,"nonce":"5f0c1a52-7b0e-4b8e-9a55-2f1c8f0a4d11"}',
};

/**
 * `POST /webhook/google-wallet`: Google reports that a person saved or removed a pass, for classes with this address in
 * their `callbackOptions`. Only the signature authenticates a call.
 *
 * Google repeats a callback that is not answered 200. The answer is 503 if its keys or the registry are unavailable, or
 * the pass is being created; 401 or 400 if the call is not Google's; and 200 if a repetition would be useless.
 */
export function googleCallbackEndpoint(ports: GoogleCallbackPorts): Endpoint {
  const turns = new CallTurns(walletLimits.callbackChanges, ports.clock);
  const notes = new Notes(ports);
  return endpoint({
    method: "POST",
    path: CALLBACK_PATH,
    name: "google_callback",
    operation: "takeGoogleCallback",
    tag: "Passes",
    summary: "Receives Google's callbacks about a pass: that somebody has saved it, or removed it",
    description:
      "Signed by the protocol ECv2SigningOnly for the issuer of the object. Answered once it is on disk, and the tenant's " +
      "wallet webhook is called; a callback with a known `nonce` has no effect. Safe to repeat.",
    body: { schema: SignedCallback, examples: [EXAMPLE] },
    answers: {
      200: {
        description: "Recorded, known already, or of no pass that is known here.",
        schema: Type.Object({ status: Type.Literal("received") }, { $id: "GoogleCallbackReceived" }),
        examples: [{ status: "received" }],
      },
    },
    fails: {
      400: failure("GoogleCallbackMalformed", "It is no signed message.", "the body must be a JSON object"),
      401: failure("GoogleCallbackUnsigned", "It is not Google's, or has expired. Nothing is stored.", UNSIGNED, {
        headers: ["WWW-Authenticate"],
      }),
      413: failure(
        "GoogleCallbackTooLarge",
        "The body is too large.",
        `the body is larger than ${walletLimits.callbackBytesMax} bytes`,
      ),
      429: failure("GoogleCallbackCrowded", "Too many callbacks of the issuer arrive at one time.", CROWDED, {
        headers: ["Retry-After"],
      }),
      503: failure("GoogleCallbackUnjudged", "Google's keys cannot be had, or the pass is being created.", UNSETTLED, {
        headers: ["Retry-After"],
      }),
    },
    async handle(door, exchange) {
      exchange.challenge = 'Signature realm="waybill google callbacks"';
      const body = parseJson(await door.bytes(exchange, walletLimits.callbackBytesMax));
      if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");
      const read = await ports.wallet.callbacks.open(body);
      if (read.kind === "unjudged") {
        notes.count("unjudged");
        throw new ApiError(503, NO_KEYS, {}, walletLimits.callbackRetrySeconds);
      }
      if (read.kind === "malformed") {
        notes.refused("malformed", read.why);
        throw new ApiError(400, read.why);
      }
      if (read.kind === "unsigned") {
        notes.refused("unsigned", read.why);
        throw new ApiError(401, UNSIGNED);
      }
      await turns.inTurn(read.callback.issuerId, () => take(read.callback, ports, notes));
      return reply(200, { status: "received" as const });
    },
  });
}

const CROWDED = "too many such calls are under way: try again shortly";
const NO_KEYS = "the keys to judge callbacks by cannot be had: try again";
const UNSETTLED = "the pass is being created: try again";

/** Stores the change before reporting it, because the receiver may then read the pass. */
async function take(callback: GoogleCallback, { wallet, passKit }: GoogleCallbackPorts, notes: Notes): Promise<void> {
  const action = ACTIONS.get(callback.event);
  if (action === undefined) return notes.unused("other_event", callback);
  const taken = await wallet.saves.take(callback);
  switch (taken.kind) {
    case "taken":
      notes.count(callback.event);
      // Google does not name the device.
      return passKit.webhooks.note({ ...taken.pass, action, deviceId: null });
    case "repeated":
      return notes.count("repeated");
    case "unknown":
      return notes.unused("unknown_pass", callback);
    case "unsettled":
      notes.count("unsettled");
      throw new ApiError(503, UNSETTLED, {}, walletLimits.callbackRetrySeconds);
  }
}

/** Counts callbacks, and logs a few of those without effect, since strangers can send them. */
class Notes {
  private nextMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly ports: Pick<GoogleCallbackPorts, "telemetry" | "clock">) {}

  count(result: string): void {
    this.ports.telemetry.count("google_callbacks", { result });
  }

  refused(result: "malformed" | "unsigned", why: string): void {
    this.count(result);
    this.log("a callback to Google's wallet address was refused", { why });
  }

  unused(result: "other_event" | "unknown_pass", { classId, objectId, event }: GoogleCallback): void {
    this.count(result);
    this.log("a callback of Google's came to nothing", { result, class_id: classId, object_id: objectId, event });
  }

  private log(message: string, fields: Readonly<Record<string, string>>): void {
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + walletLimits.callbackLogMs;
    this.ports.telemetry.log("warn", message, fields);
  }
}
