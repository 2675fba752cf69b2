import { Type } from "@sinclair/typebox";
import type { Clock } from "../../../domain/clock.ts";
import { ApiError } from "../../../http/api-error.ts";
import { CallTurns } from "../../../http/call-turns.ts";
import { type Endpoint, endpoint, type RawParameters, reply } from "../../../http/endpoint.ts";
import type { Exchange } from "../../../http/exchange.ts";
import { failure } from "../../../http/failures.ts";
import type { PathParameter, QueryParameter } from "../../../http/parameters.ts";
import { parseJson } from "../../../http/parse-json.ts";
import { walletLimits } from "../limits.ts";
import type { Pass } from "../passes.ts";
import { FETCHED_OFTEN } from "../refusals.ts";
import type { DeviceChange } from "./device-webhooks.ts";
import { admittedPass } from "./pass-gate.ts";
import type { PassKitPorts } from "./pass-kit-ports.ts";

/**
 * Passes' `webServiceURL` is this path under the public address. Devices append `/v1/…`, and keep it for the pass's
 * lifetime.
 */
export const PREFIX = "/wallet/v1";

const device: PathParameter<string> = {
  description: "The device library identifier.",
  example: "3f2a9c0d5e6b7a8190817263544536271",
  read: (text) => nameIn(text, walletLimits.deviceIdCharsMax),
};
export const passType: PathParameter<string> = {
  description: "The pass type identifier.",
  example: "pass.com.example.event",
  read: nameIn,
};
export const serial: PathParameter<string> = {
  description: "The pass's serial number.",
  example: "EVT-0001",
  read: nameIn,
};
const passesUpdatedSince: QueryParameter<number> = {
  description: "The `lastUpdated` of an earlier answer; absent: all of them.",
  schema: Type.String(),
  // A tag that we issued; any other value requests everything.
  read: (text) => (text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : 0),
};

export const BAD_REQUEST = failure("DeviceBadRequest", "The body is malformed.", "the body is not valid JSON");
const TOO_LARGE = failure("DeviceTooLarge", "The body is too large.", "the body is larger than 4096 bytes");
const NOTHING_THERE = failure(
  "NothingThere",
  "A part of the address is nothing that a device, a pass type or a pass can be named.",
  "there is nothing at this address",
);
export const UNKNOWN_PASS = failure(
  "UnknownPass",
  "There is no such pass, or its token is another.",
  "there is no such pass, or its token is another: send it as Authorization: ApplePass",
  { headers: ["WWW-Authenticate"] },
);

export const BUSY = failure(
  "PassBusy",
  "Too many devices register or unregister the pass at one time.",
  "too many such calls are under way: try again shortly",
  { headers: ["Retry-After"] },
);

const LAST_MODIFIED = { "Last-Modified": "When the pass was signed: what to say in `If-Modified-Since`." };

/** Members shared by the endpoints that require a pass's token. */
const OF_PASS = { tag: "Pass devices", security: ["applePass"] } as const;
const REGISTRATION = {
  ...OF_PASS,
  path: `${PREFIX}/devices/:device/registrations/:passType/:serial`,
  params: { device, passType, serial },
} as const;

/**
 * The web service through which Apple's devices keep passes current (Apple, "Adding a Web Service to Update Passes"):
 * register, unregister, list changes, fetch the latest pass, and log complaints.
 *
 * P1. A pass is listed as changed only once its bundle is stored: bundle and update tag are one registry transaction.
 * P2. The latest pass is the stored bundle, even while a later version waits for its signature: a request never causes
 *     signing, and the push for the later version follows its bundle.
 * P3. One change of a pass's devices is in progress at a time, and a few of all passes, so a pass holder cannot occupy
 *     all of the registry's connections. Files of passes are read in turn, too (`fileTurns`, by pass).
 */
export function passKitEndpoints(passKit: PassKitPorts, clock: Clock, fileTurns: CallTurns): readonly Endpoint[] {
  const changes = new CallTurns(walletLimits.deviceChanges, clock);
  return [
    registerEndpoint(passKit, changes),
    unregisterEndpoint(passKit, changes),
    updatesEndpoint(passKit),
    latestPassEndpoint(passKit, fileTurns),
    logEndpoint(passKit),
  ];
}

function registerEndpoint({ passes, devices, webhooks }: PassKitPorts, changes: CallTurns): Endpoint {
  return endpoint({
    ...REGISTRATION,
    method: "POST",
    name: "pass_register",
    operation: "registerDevice",
    summary: "A device has the pass, and says where it can be pushed to",
    description: "A new push token holds for all passes of the type on the device.",
    body: {
      schema: Type.Object({ pushToken: Type.String({ pattern: PUSH_TOKEN.source }) }),
      examples: [{ pushToken: "0f744707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bbad78" }],
    },
    answers: {
      200: { description: "It had the pass already.", schema: null },
      201: { description: "It is registered, and the tenant's webhook is told.", schema: null },
    },
    fails: {
      400: BAD_REQUEST,
      401: UNKNOWN_PASS,
      403: failure(
        "TooManyDevices",
        "The pass is on as many devices as one can be.",
        "The pass is on as many devices as one pass can be.",
      ),
      404: NOTHING_THERE,
      413: TOO_LARGE,
      429: BUSY,
    },
    async handle(door, exchange, params) {
      const deviceId = device.read(params["device"] ?? null);
      const [passTypeId, pass] = await passAt(passes, exchange, params);
      const pushToken = pushTokenIn(await door.bytes(exchange, walletLimits.registrationBytesMax));
      const registration = { deviceId, passId: pass.passId, passTypeId, pushToken };
      const result = await changes.inTurn(pass.passId, () => devices.register(registration));
      if (result === "full") throw new ApiError(403, "The pass is on as many devices as one pass can be.");
      if (result === "known") return reply(200, null, UNCACHED);
      webhooks.note(buildChange("register", pass, deviceId));
      return reply(201, null, UNCACHED);
    },
  });
}

function unregisterEndpoint({ passes, devices, webhooks }: PassKitPorts, changes: CallTurns): Endpoint {
  return endpoint({
    ...REGISTRATION,
    method: "DELETE",
    name: "pass_unregister",
    operation: "unregisterDevice",
    summary: "A device has the pass no longer",
    answers: { 200: { description: "It is not registered.", schema: null } },
    fails: { 401: UNKNOWN_PASS, 404: NOTHING_THERE, 429: BUSY },
    async handle(_door, exchange, params) {
      const deviceId = device.read(params["device"] ?? null);
      const [, pass] = await passAt(passes, exchange, params);
      const had = await changes.inTurn(pass.passId, () => devices.unregister(deviceId, pass.passId));
      if (had) webhooks.note(buildChange("unregister", pass, deviceId));
      return reply(200, null, UNCACHED);
    },
  });
}

/** Requires no token: Apple's protocol authenticates this call only by knowledge of the device's id. */
function updatesEndpoint({ devices }: PassKitPorts): Endpoint {
  return endpoint({
    method: "GET",
    path: `${PREFIX}/devices/:device/registrations/:passType`,
    name: "pass_updates",
    operation: "listUpdatedPasses",
    tag: "Pass devices",
    summary: "Serials of the device's passes that changed since a tag",
    params: { device, passType },
    query: { passesUpdatedSince },
    answers: {
      200: {
        description: "What changed, and the tag to ask with next time.",
        schema: Type.Object({ serialNumbers: Type.Array(Type.String()), lastUpdated: Type.String() }),
        examples: [{ serialNumbers: ["01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11"], lastUpdated: "42" }],
      },
      204: { description: "Nothing changed, or the device is not known.", schema: null },
    },
    fails: { 404: NOTHING_THERE },
    async handle(_door, { request }, params) {
      const since = passesUpdatedSince.read(readParameter(request.url, "passesUpdatedSince"));
      const changed = await devices.updatedSince(
        device.read(params["device"] ?? null),
        passType.read(params["passType"] ?? null),
        since,
      );
      if (changed === null) return reply(204, null, UNCACHED);
      return reply(200, { serialNumbers: changed.serials, lastUpdated: String(changed.tag) }, UNCACHED);
    },
  });
}

function latestPassEndpoint({ passes }: PassKitPorts, fileTurns: CallTurns): Endpoint {
  return endpoint({
    ...OF_PASS,
    method: "GET",
    path: `${PREFIX}/passes/:passType/:serial`,
    name: "pass_latest",
    operation: "getLatestPass",
    summary: "The latest signed pass",
    params: { passType, serial },
    headers: [
      {
        name: "If-Modified-Since",
        description: "The `Last-Modified` of an earlier answer.",
        schema: Type.String(),
      },
    ],
    answers: {
      200: {
        description: "The pass.",
        schema: null,
        mediaType: "application/vnd.apple.pkpass",
        isBinary: true,
        headers: LAST_MODIFIED,
      },
      304: { description: "It has not changed since.", schema: null, headers: LAST_MODIFIED },
    },
    fails: {
      401: UNKNOWN_PASS,
      404: failure(
        "PassNotSigned",
        "The pass exists, but was never signed; or a part of the address is nothing that it can be named.",
        "the pass has not been signed yet",
      ),
      429: FETCHED_OFTEN,
    },
    async handle(_door, exchange, params) {
      const [, pass] = await passAt(passes, exchange, params);
      const bundle = await fileTurns.inTurn(pass.passId, () => passes.bundle(pass.passId));
      if (bundle === null) throw new ApiError("no_such_file", "the pass has not been signed yet");
      const headers = { ...UNCACHED, "last-modified": new Date(bundle.modifiedAt * 1000).toUTCString() };
      if (isUnchanged(exchange.request, bundle.modifiedAt)) return reply(304, null, headers);
      const typed = { ...headers, "content-type": "application/vnd.apple.pkpass" };
      return exchange.file(200, bundle.bytes, typed, pass);
    },
  });
}

function logEndpoint({ log }: PassKitPorts): Endpoint {
  return endpoint({
    method: "POST",
    path: `${PREFIX}/log`,
    name: "pass_log",
    operation: "logDeviceComplaint",
    tag: "Pass devices",
    summary: "Receives a device's complaints",
    body: {
      schema: Type.Object({ logs: Type.Array(Type.String()) }),
      examples: [{ logs: ["[2026-11-21 07:30:00 +0000] Get pass task failed: the server answered 500"] }],
    },
    answers: {
      200: {
        description:
          `Taken; what is more than ${walletLimits.deviceLogLinesMax} lines a call, or ${walletLimits.deviceLogLinesPerMinute} a ` +
          "minute from all devices together, is dropped.",
        schema: null,
      },
    },
    fails: { 400: BAD_REQUEST, 413: TOO_LARGE },
    async handle(door, exchange) {
      log.take(linesIn(await door.bytes(exchange, walletLimits.deviceLogBytesMax)));
      return reply(200, null, UNCACHED);
    },
  });
}

async function passAt(
  passes: PassKitPorts["passes"],
  exchange: Exchange,
  params: RawParameters,
): Promise<[passTypeId: string, Pass]> {
  const passTypeId = passType.read(params["passType"] ?? null);
  const named = { passTypeId, serial: serial.read(params["serial"] ?? null) };
  return [passTypeId, await admittedPass(exchange, passes, named)];
}

/**
 * Whether `If-Modified-Since` matches (RFC 9110, 13.1.3); an invalid date counts as absent. Both times are in whole
 * seconds.
 */
function isUnchanged({ headers }: Request, modifiedAt: number): boolean {
  const since = Date.parse(headers.get("if-modified-since") ?? "");
  return !Number.isNaN(since) && modifiedAt <= Math.floor(since / 1000);
}

/** Checks a name from the path (null: invalid percent-encoding). Throws 404 for an impossible name. */
function nameIn(text: string | null, charsMax: number = walletLimits.passNameCharsMax): string {
  if (text === null || text === "" || text.length > charsMax || /\p{Cc}/u.test(text)) {
    throw new ApiError(404, "there is nothing at this address");
  }
  return text;
}

/** Reads one query parameter, or undefined. Ignores all others. */
function readParameter(url: string, name: string): string | undefined {
  const at = url.indexOf("?");
  return at === -1 ? undefined : (new URLSearchParams(url.slice(at + 1)).get(name) ?? undefined);
}

/**
 * Apple's tokens are hex; those of wallets for Android are their push service's, such as `cA47ZTE:APA91bH…`. The token
 * becomes part of the push service's URL, so it must not contain characters that change the URL's target.
 */
const PUSH_TOKEN = /^[A-Za-z0-9_:.=+~-]{1,1024}$/;

function pushTokenIn(body: Uint8Array): string {
  const token = readMember(parseJson(body), "pushToken");
  if (typeof token !== "string" || !PUSH_TOKEN.test(token)) {
    throw new ApiError(400, 'the body must be {"pushToken": "<the device\'s push token>"}');
  }
  return token;
}

function linesIn(body: Uint8Array): readonly string[] {
  const logs = readMember(parseJson(body), "logs");
  if (!Array.isArray(logs) || !logs.every((line) => typeof line === "string")) {
    throw new ApiError(400, 'the body must be {"logs": ["<a message>", …]}');
  }
  return logs;
}

export function readMember(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

function buildChange(action: DeviceChange["action"], pass: Pass, deviceId: string): DeviceChange {
  return { action, tenantId: pass.tenantId, passId: pass.passId, serial: pass.serial, deviceId };
}

export const UNCACHED = { "cache-control": "no-store, private" };
