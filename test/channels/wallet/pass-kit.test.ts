import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { DeviceLog } from "../../../src/channels/wallet/devices/device-log.ts";
import type { DeviceChange } from "../../../src/channels/wallet/devices/device-webhooks.ts";
import type { PassKitPorts } from "../../../src/channels/wallet/devices/pass-kit-ports.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { Front, NO_PASSES } from "../../http/support/front.ts";
import { RawConnection } from "../../http/support/raw-connection.ts";
import { type AMadePass, PASS_TYPE, PassWorld } from "../../support/pass-world.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { usable } from "./usable.ts";

let world: PassWorld;
let front: Front;
const told: DeviceChange[] = [];
const telemetry = new QuietTelemetry();
const log = new DeviceLog({ clock: systemClock, telemetry, keptMax: 1_000 });
let devices = 0;
/** Changes of devices that are in progress; those of the held pass wait for the gate. */
const changes = {
  held: "",
  gate: Promise.withResolvers<void>(),
  now: 0,
  most: 0,
  async of<T>(passId: string, change: () => Promise<T>): Promise<T> {
    changes.most = Math.max(changes.most, (changes.now += 1));
    if (passId === changes.held) await changes.gate.promise;
    return change().finally(() => (changes.now -= 1));
  },
};

beforeAll(async () => {
  world = await PassWorld.open();
  const { passes, devices: registered } = world.registry;
  const webhooks = { note: (change: DeviceChange) => told.push(change) };
  const sandbox = { messages: () => [], erase: () => 0 };
  const counted: PassKitPorts["devices"] = {
    updatedSince: (...given) => registered.updatedSince(...given),
    register: (registration) => changes.of(registration.passId, () => registered.register(registration)),
    unregister: (deviceId, passId) => changes.of(passId, () => registered.unregister(deviceId, passId)),
  };
  front = await Front.start({
    passKit: { ...NO_PASSES, passes, devices: counted, webhooks, log },
    deviceLog: log,
    sandbox,
  });
}, 300_000);
beforeEach(() => {
  told.length = 0;
});
afterAll(async () => {
  await front?.stop();
  await world?.stop();
}, 90_000);

const aDevice = () => `device-${(devices += 1)}`;
const buildRegistrationPath = (device: string, { passTypeId, serial }: AMadePass) =>
  `/wallet/v1/devices/${device}/registrations/${passTypeId}/${encodeURIComponent(serial)}`;
const passAt = ({ passTypeId, serial }: AMadePass) => `/wallet/v1/passes/${passTypeId}/${encodeURIComponent(serial)}`;
const shown = ({ authenticationToken }: AMadePass) => ({ authorization: `ApplePass ${authenticationToken}` });

function register(device: string, pass: AMadePass, pushToken = "aa11", headers: Record<string, string> = shown(pass)) {
  const body = JSON.stringify({ pushToken });
  return front.fetch(buildRegistrationPath(device, pass), {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body,
  });
}
const unregister = (device: string, pass: AMadePass, headers: Record<string, string> = shown(pass)) =>
  front.fetch(buildRegistrationPath(device, pass), { method: "DELETE", headers });
const changed = (device: string, query = "", type = PASS_TYPE) =>
  front.fetch(`/wallet/v1/devices/${device}/registrations/${type}${query}`);
const latest = (pass: AMadePass, headers: Record<string, string> = {}, method = "GET") =>
  front.fetch(passAt(pass), { method, headers: { ...shown(pass), ...headers } });

describe("registering a device", () => {
  test("answers 201 for a new one and 200 for a known one, and tells the tenant of the new one only", async () => {
    const [device, pass] = [aDevice(), await world.aPass()];
    const first = await register(device, pass);
    expect([first.status, first.text]).toEqual([201, ""]);
    expect(first.headers.get("cache-control")).toBe("no-store, private");
    expect((await register(device, pass)).status).toBe(200);
    const { passId, serial, tenantId } = pass;
    expect(told).toEqual([{ action: "register", tenantId, passId, serial, deviceId: device }]);
  });

  test("keeps the newest push token, also when the device is known", async () => {
    const [device, pass] = [aDevice(), await world.aPass()];
    await register(device, pass, "old");
    expect((await register(device, pass, "new")).status).toBe(200);
    expect(await world.registry.devices.targets(pass.passId)).toEqual([{ deviceId: device, pushToken: "new" }]);
  });

  test.each([
    ["no token", () => ({})],
    ["another scheme", (token: string) => ({ authorization: `Bearer ${token}` })],
    ["a wrong token", (token: string) => ({ authorization: `ApplePass ${token.slice(0, -1)}y` })],
    ["a token that is cut", (token: string) => ({ authorization: `ApplePass ${token.slice(0, -1)}` })],
    ["an empty token", () => ({ authorization: "ApplePass " })],
    ["an endless token", (token: string) => ({ authorization: `ApplePass ${token}${"x".repeat(1_000)}` })],
  ])("with %s is refused and leaves nothing behind", async (_, headersOf) => {
    const [device, pass] = [aDevice(), await world.aPass()];
    await world.sign(pass, 1);
    const headers: Record<string, string> = headersOf(pass.authenticationToken);
    const answers = [await register(device, pass, "aa", headers), await unregister(device, pass, headers)];
    answers.push(await front.fetch(passAt(pass), { headers: { ...headers, "if-modified-since": FUTURE } }));
    for (const { status, body, headers: answered } of answers) {
      expect([status, typeof body["error"]]).toEqual([401, "string"]);
      expect(answered.get("www-authenticate")).toContain("ApplePass");
    }
    expect(await world.registry.devices.count(pass.passId)).toBe(0);
    expect(told).toEqual([]);
  });

  test("accepts the scheme in any case", async () => {
    const pass = await world.aPass();
    for (const scheme of ["applepass", "APPLEPASS", "ApplePass"]) {
      const headers = { authorization: `${scheme} ${pass.authenticationToken}` };
      expect([scheme, (await register(aDevice(), pass, "aa", headers)).status]).toEqual([scheme, 201]);
    }
  });

  /** https://walletunion.com/developer/ and similar apps: Apple's protocol under their own scheme. */
  test.each(["WalletUnionPass", "WalletUnionHMSPass", "AndroidPass", "WalletPasses"])(
    "works for a wallet for Android that says %s, with its push service's token",
    async (scheme) => {
      const [device, pass] = [aDevice(), await world.aPass()];
      await world.sign(pass, 1);
      const headers = { authorization: `${scheme} ${pass.authenticationToken}` };
      const fcm = `cA47ZTEqQ0:APA91bH${"x-Y_9".repeat(30)}`;
      expect((await register(device, pass, fcm, headers)).status).toBe(201);
      expect(await world.registry.devices.targets(pass.passId)).toEqual([{ deviceId: device, pushToken: fcm }]);
      expect((await changed(device)).body).toMatchObject({ serialNumbers: [pass.serial] });
      expect((await latest(pass, headers)).status).toBe(200);
      expect((await unregister(device, pass, headers)).status).toBe(200);
      expect(await world.registry.devices.count(pass.passId)).toBe(0);
    },
  );

  test("of a pass that does not exist is refused like a wrong token, with the same words", async () => {
    const pass = await world.aPass();
    const wrong = await register(aDevice(), pass, "aa", { authorization: "ApplePass wrong" });
    const unknown = await register(aDevice(), { ...pass, serial: "nobody's" });
    const otherType = await register(aDevice(), { ...pass, passTypeId: "pass.test.other" });
    expect([wrong, unknown, otherType].map(({ status, text }) => [status, text])).toEqual(
      Array.from({ length: 3 }, () => [401, wrong.text]),
    );
  });

  test.each([
    ["no JSON", "{", 400],
    ["nothing", "", 400],
    ["a list", "[]", 400],
    ["no push token", "{}", 400],
    ["a push token that is a number", '{"pushToken":7}', 400],
    ["an empty push token", '{"pushToken":""}', 400],
    ["a push token that leads elsewhere", '{"pushToken":"../../x"}', 400],
    ["invalid UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), 400],
    ["more than 4 KiB", JSON.stringify({ pushToken: "a", more: "x".repeat(4_096) }), 413],
  ])("with a body that is %s is refused, and the connection goes on", async (_, body, status) => {
    const [device, pass] = [aDevice(), await world.aPass()];
    const init = { method: "POST", headers: shown(pass), body };
    const answer = await front.fetch(buildRegistrationPath(device, pass), init);
    expect([answer.status, typeof answer.body["error"]]).toEqual([status, "string"]);
    expect((await register(device, pass)).status).toBe(201);
  });

  test("a body without a declared length is cut off at the bound as well", async () => {
    const pass = await world.aPass();
    const connection = await RawConnection.open(front.port);
    const head = `POST ${buildRegistrationPath(aDevice(), pass)} HTTP/1.1\r\nHost: x\r\nAuthorization: ApplePass ${pass.authenticationToken}\r\n`;
    await connection.write(`${head}Transfer-Encoding: chunked\r\n\r\n1400\r\n${"x".repeat(0x1400)}\r\n0\r\n\r\n`);
    expect((await connection.answer()).status).toBe(413);
    connection.close();
  });
});

test("whoever has a pass changes its devices one at a time, of which few wait, and those of another pass do not", async () => {
  const [pass, other] = [await world.aPass(), await world.aPass()];
  changes.held = pass.passId;
  changes.most = 0;
  const { waitingMax } = walletLimits.deviceChanges;
  const calls = Array.from({ length: waitingMax + 3 }, (_, n) =>
    n % 2 === 0 ? register(aDevice(), pass) : unregister(aDevice(), pass),
  );
  const first = await Promise.race(calls);
  expect([first.status, first.headers.get("retry-after")]).toEqual([429, "5"]);
  expect((await register(aDevice(), other)).status).toBe(201);
  changes.gate.resolve();
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 201, 429]));
  expect(statuses.filter((status) => status === 429)).toHaveLength(2);
  expect(changes.most).toBe(2);
});

describe("unregistering a device", () => {
  test("answers 200 each time, and tells the tenant once", async () => {
    const [device, pass] = [aDevice(), await world.aPass()];
    await register(device, pass);
    told.length = 0;
    expect((await unregister(device, pass)).status).toBe(200);
    expect((await unregister(device, pass)).status).toBe(200);
    expect(told.map(({ action, passId }) => [action, passId])).toEqual([["unregister", pass.passId]]);
    expect((await changed(device)).status).toBe(204);
  });
});

describe("what changed", () => {
  test("is told without a token, as serials and a text tag that moves whenever serials are named", async () => {
    const [device, one, two] = [aDevice(), await world.aPass(), await world.aPass()];
    for (const pass of [one, two]) {
      await world.sign(pass, 1);
      await register(device, pass);
    }
    const all = await changed(device);
    expect([all.status, all.headers.get("cache-control")]).toEqual([200, "no-store, private"]);
    expect(all.body).toEqual({ serialNumbers: [one.serial, two.serial], lastUpdated: expect.stringMatching(/^\d+$/) });
    const tag = String(all.body["lastUpdated"]);
    const none = await changed(device, `?passesUpdatedSince=${tag}`);
    expect([none.status, none.text]).toEqual([204, ""]);
    await world.sign(one, 2);
    const next = await changed(device, `?passesUpdatedSince=${tag}`);
    expect(next.body["serialNumbers"]).toEqual([one.serial]);
    expect(Number(next.body["lastUpdated"])).toBeGreaterThan(Number(tag));
  });

  test.each(["", "?passesUpdatedSince=", "?passesUpdatedSince=yesterday", "?passesUpdatedSince=-1", "?other=1"])(
    "is everything if the tag is invalid: %p",
    async (query) => {
      const [device, pass] = [aDevice(), await world.aPass()];
      await world.sign(pass, 1);
      await register(device, pass);
      expect((await changed(device, query)).body["serialNumbers"]).toEqual([pass.serial]);
    },
  );

  test("is nothing for an unknown device, another type, or passes that are not on it", async () => {
    const [device, pass, other] = [aDevice(), await world.aPass(), await world.aPass()];
    for (const one of [pass, other]) await world.sign(one, 1);
    await register(device, pass);
    expect((await changed(aDevice())).status).toBe(204);
    expect((await changed(device, "", "pass.test.other")).status).toBe(204);
    expect((await changed(device)).body["serialNumbers"]).toEqual([pass.serial]);
  });
});

const FUTURE = "Fri, 01 Jan 2100 00:00:00 GMT";

describe("the latest pass", () => {
  test("is the stored bundle, with its Last-Modified, and is not sent again to a device that has it", async () => {
    const pass = await world.aPass();
    const { modifiedAt } = usable(await world.sign(pass, 1));
    const first = await latest(pass);
    expect([first.status, first.text]).toEqual([200, "bundle 1"]);
    expect(first.headers.get("content-type")).toBe("application/vnd.apple.pkpass");
    expect(first.headers.get("cache-control")).toBe("no-store, private");
    const modified = first.headers.get("last-modified") ?? "";
    expect(Date.parse(modified)).toBe(modifiedAt * 1000);
    const again = await latest(pass, { "if-modified-since": modified });
    expect([again.status, again.text, again.headers.get("last-modified")]).toEqual([304, "", modified]);
  });

  test("is seen as new after two updates in one second", async () => {
    const pass = await world.aPass();
    let modified = "";
    for (const version of [1, 2, 3]) {
      await world.sign(pass, version);
      const answer = await latest(pass, modified === "" ? {} : { "if-modified-since": modified });
      expect([answer.status, answer.text]).toEqual([200, `bundle ${version}`]);
      modified = answer.headers.get("last-modified") ?? "";
    }
  });

  test("is sent where the date is none", async () => {
    const pass = await world.aPass();
    await world.sign(pass, 1);
    for (const date of ["", "yesterday", "NaN"]) {
      expect((await latest(pass, { "if-modified-since": date })).status).toBe(200);
    }
  });

  test("is the earlier one while a later version waits for its signature", async () => {
    const pass = await world.aPass();
    await world.sign(pass, 1);
    const update = { passId: pass.passId, jobId: "job-of-update", notificationKind: null, notifyMessage: null };
    const images = new Map();
    await world.registry.passes.update("acme", { ...update, images, change: ({ content }) => content });
    expect((await latest(pass)).text).toBe("bundle 1");
  });

  test("can be asked about by HEAD", async () => {
    const pass = await world.aPass();
    await world.sign(pass, 1);
    const head = await latest(pass, {}, "HEAD");
    expect([head.status, head.text, head.headers.has("last-modified")]).toEqual([200, "", true]);
  });

  test("is the one that the token belongs to where tenants share a pass type and a serial", async () => {
    const [mine, theirs] = [
      await world.aPass({ serial: "shared" }),
      await world.aPass({ serial: "shared", tenantId: "globex" }),
    ];
    await world.sign(mine, 1);
    await world.sign(theirs, 2);
    expect([(await latest(mine)).text, (await latest(theirs)).text]).toEqual(["bundle 1", "bundle 2"]);
    await register(aDevice(), theirs);
    expect(told).toMatchObject([{ tenantId: "globex", passId: theirs.passId }]);
  });

  test("that was never signed is a 404", async () => {
    expect((await latest(await world.aPass())).status).toBe(404);
  });
});

describe("addresses", () => {
  test("hold names percent-encoded, with whatever is in them", async () => {
    const pass = await world.aPass({ serial: "a/b c%ü?#..%2F" });
    await world.sign(pass, 1);
    const device = aDevice();
    expect((await register(device, pass)).status).toBe(201);
    expect((await latest(pass)).text).toBe("bundle 1");
    expect((await changed(device)).body["serialNumbers"]).toEqual([pass.serial]);
  });

  test.each([
    "/wallet/v1/passes/pass.test.event/%zz",
    "/wallet/v1/passes/pass.test.event/%E0%A4",
    "/wallet/v1/passes/pass.test.event/a%00b",
    "/wallet/v1/devices/%zz/registrations/pass.test.event",
    `/wallet/v1/devices/${"d".repeat(300)}/registrations/pass.test.event`,
    `/wallet/v1/passes/pass.test.event/${"s".repeat(2_000)}`,
    "/wallet/v1/passes/pass.test.event",
    "/wallet/v1/",
  ])("that name nothing are a 404: %s", async (path) => {
    const answer = await front.fetch(path, { headers: { authorization: "ApplePass x" } });
    expect([answer.status, typeof answer.body["error"]]).toEqual([404, "string"]);
  });

  test("answer a method that they do not take with 405 and those that they do", async () => {
    const answer = await front.fetch("/wallet/v1/log", { method: "PUT" });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
  });
});

describe("the device log", () => {
  const complain = (body: string) => front.fetch("/wallet/v1/log", { method: "POST", body });

  test("takes complaints, and shows them to operators of the sandbox, newest first", async () => {
    expect((await complain('{"logs":["first","second"]}')).status).toBe(200);
    const { body } = await front.operate("GET", "/sandbox/device-log?limit=2");
    expect(body["complaints"]).toMatchObject([{ message: "second" }, { message: "first" }]);
    expect(telemetry.lines).toContain("warn: a device complained");
  });

  test.each([
    ["{", 400],
    ["{}", 400],
    ['{"logs":"x"}', 400],
    ['{"logs":[1]}', 400],
    [JSON.stringify({ logs: ["x".repeat(16 * 1024)] }), 413],
  ])("refuses anything but a short list of lines: %.20s", async (body, status) => {
    expect((await complain(body)).status).toBe(status);
  });
});
