import type { Elysia } from "elysia";
import { ApiError } from "../../../domain/errors.ts";
import { limits } from "../../../domain/limits.ts";
import type { Pass } from "../../../domain/passes.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { parseJson } from "../../../http/request-body.ts";
import type { DeviceChange } from "./device-webhooks.ts";
import { admittedPass } from "./pass-gate.ts";
import type { PassKitPorts } from "./pass-kit-ports.ts";

/** `webServiceURL` of passes is this under the public address. Devices append `/v1/…`, and keep it for a pass's life. */
const PREFIX = "/wallet/v1";
const REGISTRATION = `${PREFIX}/devices/:device/registrations/:passType/:serial`;

/**
 * The web service that Apple's devices keep passes current with (Apple, "Adding a Web Service to Update Passes"):
 * register, unregister, what changed, the latest pass, and what they complain of.
 *
 * P1. What is listed as changed has its bundle stored: a bundle and its update tag are one transaction of the registry.
 * P2. The latest pass is the bundle that is stored, also while a later version waits for its signature: nobody who asks
 *     makes us sign, and the device hears of the later one by its push, which follows the bundle.
 */
export function passKitRoutes(app: Elysia, door: FrontDoor): void {
  const { passKit } = door.ports;
  app.post(REGISTRATION, ({ request, params }) =>
    door.serve("pass_register", request, (exchange) => register(door, exchange, params)),
  );
  app.delete(REGISTRATION, ({ request, params }) =>
    door.serve("pass_unregister", request, (exchange) => unregister(passKit, exchange, params)),
  );
  app.get(`${PREFIX}/devices/:device/registrations/:passType`, ({ request, params }) =>
    door.serve("pass_updates", request, (exchange) => listUpdates(passKit, exchange, params)),
  );
  app.get(`${PREFIX}/passes/:passType/:serial`, ({ request, params }) =>
    door.serve("pass_latest", request, (exchange) => latestPass(passKit, exchange, params)),
  );
  app.post(`${PREFIX}/log`, ({ request }) =>
    door.serve("pass_log", request, async (exchange) => {
      passKit.log.take(linesIn(await door.bytes(exchange, limits.deviceLogBytesMax)));
      return exchange.body(200, null, UNCACHED);
    }),
  );
}

interface PassPath {
  readonly passType: string;
  readonly serial: string;
}

async function register(
  door: FrontDoor,
  exchange: Exchange,
  path: PassPath & { readonly device: string },
): Promise<Response> {
  const { passes, devices, webhooks } = door.ports.passKit;
  const deviceId = nameIn(path.device, limits.deviceIdCharsMax);
  const [passTypeId, pass] = await passAt(passes, exchange, path);
  const pushToken = pushTokenIn(await door.bytes(exchange, limits.registrationBytesMax));
  const result = await devices.register({ deviceId, passId: pass.passId, passTypeId, pushToken });
  if (result === "known") return exchange.body(200, null, UNCACHED);
  webhooks.note(changeOf("register", pass, deviceId));
  return exchange.body(201, null, UNCACHED);
}

async function unregister(
  { passes, devices, webhooks }: PassKitPorts,
  exchange: Exchange,
  path: PassPath & { readonly device: string },
): Promise<Response> {
  const deviceId = nameIn(path.device, limits.deviceIdCharsMax);
  const [, pass] = await passAt(passes, exchange, path);
  if (await devices.unregister(deviceId, pass.passId)) webhooks.note(changeOf("unregister", pass, deviceId));
  return exchange.body(200, null, UNCACHED);
}

/** Asks for no token: that the caller knows the device's id is all that Apple's protocol has here. */
async function listUpdates(
  { devices }: PassKitPorts,
  exchange: Exchange,
  path: { readonly device: string; readonly passType: string },
): Promise<Response> {
  const since = tagIn(exchange.request.url);
  const changed = await devices.updatedSince(
    nameIn(path.device, limits.deviceIdCharsMax),
    nameIn(path.passType),
    since,
  );
  if (changed === null) return exchange.body(204, null, UNCACHED);
  return exchange.json(200, { serialNumbers: changed.serials, lastUpdated: String(changed.tag) }, UNCACHED);
}

async function latestPass({ passes }: PassKitPorts, exchange: Exchange, path: PassPath): Promise<Response> {
  const [, pass] = await passAt(passes, exchange, path);
  const bundle = await passes.bundle(pass.passId);
  if (bundle === null) throw new ApiError(404, "the pass has not been signed yet");
  const headers = { ...UNCACHED, "last-modified": new Date(bundle.modifiedAt * 1000).toUTCString() };
  if (isUnchanged(exchange.request, bundle.modifiedAt)) return exchange.body(304, null, headers);
  return exchange.body(200, bundle.bytes, { ...headers, "content-type": "application/vnd.apple.pkpass" });
}

async function passAt(
  passes: PassKitPorts["passes"],
  exchange: Exchange,
  path: PassPath,
): Promise<[passTypeId: string, Pass]> {
  const passTypeId = nameIn(path.passType);
  return [passTypeId, await admittedPass(exchange, passes, { passTypeId, serial: nameIn(path.serial) })];
}

/** RFC 9110, 13.1.3: a date that is none counts as absent. Both are in whole seconds. */
function isUnchanged({ headers }: Request, modifiedAt: number): boolean {
  const since = Date.parse(headers.get("if-modified-since") ?? "");
  return !Number.isNaN(since) && modifiedAt <= Math.floor(since / 1000);
}

/** A name out of the path (null: no valid percent-encoding). Throws 404 for what can name nothing. */
function nameIn(text: string | null, charsMax: number = limits.passNameCharsMax): string {
  if (text === null || text === "" || text.length > charsMax || /\p{Cc}/u.test(text)) {
    throw new ApiError(404, "there is nothing at this address");
  }
  return text;
}

/** `passesUpdatedSince`: a tag that we gave out; anything else asks for everything. */
function tagIn(url: string): number {
  const at = url.indexOf("?");
  const tag = at === -1 ? null : new URLSearchParams(url.slice(at + 1)).get("passesUpdatedSince");
  return tag !== null && /^\d{1,15}$/.test(tag) ? Number(tag) : 0;
}

/** Apple's tokens are hex. It becomes a part of the push service's address, so nothing may be in it that leads elsewhere. */
const PUSH_TOKEN = /^[A-Za-z0-9_-]{1,512}$/;

function pushTokenIn(body: Uint8Array): string {
  const token = memberOf(parseJson(body), "pushToken");
  if (typeof token !== "string" || !PUSH_TOKEN.test(token)) {
    throw new ApiError(400, 'the body must be {"pushToken": "<the device\'s push token>"}');
  }
  return token;
}

function linesIn(body: Uint8Array): readonly string[] {
  const logs = memberOf(parseJson(body), "logs");
  if (!Array.isArray(logs) || !logs.every((line) => typeof line === "string")) {
    throw new ApiError(400, 'the body must be {"logs": ["<a message>", …]}');
  }
  return logs;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

function changeOf(action: DeviceChange["action"], pass: Pass, deviceId: string): DeviceChange {
  return { action, tenantId: pass.tenantId, passId: pass.passId, serial: pass.serial, deviceId };
}

const UNCACHED = { "cache-control": "no-store, private" };
