import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import type { DeviceChange } from "../../../src/channels/wallet/devices/device-webhooks.ts";
import { CallbackKeys } from "../../../src/channels/wallet/google/callbacks/callback-keys.ts";
import { GoogleCallbacks } from "../../../src/channels/wallet/google/callbacks/google-callbacks.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import type { Forgery } from "../../../src/channels/wallet/sandbox/google-callback-signer.ts";
import { type GoogleSandbox, startGoogleSandbox } from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import type { Clock } from "../../../src/domain/clock.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { Front, NO_PASSES } from "../../http/support/front.ts";
import { NO_WALLET } from "../../http/support/no-wallet.ts";
import { PLATFORM } from "../../http/support/wallet-front.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";

const SLOW_MS = 60_000;
const PATH = "/webhook/google-wallet";
const ISSUER = "3388000000000000001";
const CLASS = `${ISSUER}.members`;
const HOUR_MS = 60 * 60 * 1000;

let sandbox: GoogleSandbox;
let front: Front;
let stores: OpenRegistry;
const told: DeviceChange[] = [];

beforeAll(async () => {
  sandbox = await startGoogleSandbox({ clock: systemClock });
  const telemetry = new QuietTelemetry();
  const keys = new CallbackKeys({ url: sandbox.keysUrl, clock: systemClock, telemetry });
  front = await Front.start(({ passes, googleSaves, devices }) => ({
    platform: PLATFORM,
    wallet: {
      ...NO_WALLET,
      passes,
      devices,
      saves: googleSaves,
      callbacks: new GoogleCallbacks(keys, systemClock),
      google: {
        status: async () => ({ googleStatus: "ACTIVE", hasUsers: true, isInstalled: true, isCalledBack: true }),
        linkProblem: async () => null,
      },
    },
    passKit: { ...NO_PASSES, passes, devices, webhooks: { note: (change) => void told.push(change) } },
  }));
  stores = front.stores;
  await must(stores.registry.addTokens("acme", 1_000, "for the tests"));
}, SLOW_MS);
beforeEach(() => {
  told.length = 0;
});
afterAll(async () => {
  await front?.stop();
  await sandbox?.stop();
}, SLOW_MS);

let passes = 0;
async function aStoredPass({ tenantId = "acme", serial = "" } = {}) {
  passes += 1;
  const tail = String(passes).padStart(12, "0");
  const passId = `01936f2e-7c1a-7c44-8b1e-${tail}`;
  const id = serial === "" ? `${ISSUER}.pass-${passes}` : serial;
  const stored = await stores.passes.create({
    passId,
    tenantId,
    serial: id,
    content: { type: "google", kind: "generic", classId: CLASS, object: { id, classId: CLASS, state: "ACTIVE" } },
    passTypeId: null,
    authenticationToken: null,
    jobId: `01936f2e-7c1a-7b3e-9a55-${tail}`,
    images: new Map(),
  });
  expect(stored).toBe("created");
  return { passId, serial: id, tenantId };
}

async function aPass() {
  const pass = await aStoredPass();
  await stores.passes.finishCreate(pass.passId);
  return pass;
}

function aMessage(objectId: string, eventType = "save", members: JsonObject = {}): JsonObject {
  const nonce = crypto.randomUUID();
  return { classId: CLASS, objectId, eventType, expTimeMillis: Date.now() + HOUR_MS, count: 1, nonce, ...members };
}

async function call(body: unknown) {
  const answer = await front.fetch(PATH, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return answer;
}
const say = async (message: JsonObject, forgery?: Forgery) =>
  (await call(sandbox.signer.sign(message, forgery))).status;
const holders = (passId: string) => stores.googleSaves.holders(passId);
async function isInstalled(passId: string): Promise<unknown> {
  return (await front.request("GET", `/v1/passes/${passId}/status`)).body["is_installed"];
}

describe("a callback of Google's", () => {
  test("says that a pass is saved and removed: its status and its tenant hear of it", async () => {
    const { passId, serial, tenantId } = await aPass();
    // No callback has come yet, so Google's own answer about the object counts.
    expect([await holders(passId), await isInstalled(passId)]).toEqual([null, true]);
    const answer = await call(sandbox.signer.sign(aMessage(serial)));
    expect([answer.status, answer.body]).toEqual([200, { status: "received" }]);
    expect([await holders(passId), await isInstalled(passId)]).toEqual([1, true]);
    expect(await say(aMessage(serial, "del"))).toBe(200);
    expect([await holders(passId), await isInstalled(passId)]).toEqual([0, false]);
    const of = { tenantId, passId, serial, deviceId: null };
    expect(told).toEqual([
      { ...of, action: "register" },
      { ...of, action: "unregister" },
    ]);
  });

  test("counts each person who has the pass, and none below nobody", async () => {
    const { passId, serial } = await aPass();
    // Owners from before there were callbacks are unknown.
    await say(aMessage(serial, "del"));
    expect(await holders(passId)).toBeNull();
    for (const event of ["save", "save", "del"]) await say(aMessage(serial, event));
    expect(await isInstalled(passId)).toBe(true);
    for (const event of ["del", "del"]) await say(aMessage(serial, event));
    expect([await holders(passId), await isInstalled(passId)]).toEqual([0, false]);
    await say(aMessage(serial));
    expect(await holders(passId)).toBe(1);
  });

  test("has one effect, however often it comes and at one moment", async () => {
    const { passId, serial } = await aPass();
    const body = sandbox.signer.sign(aMessage(serial));
    const answers = await Promise.all(Array.from({ length: 6 }, () => call(body)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await call(body)).status).toBe(200);
    expect([await holders(passId), told.length]).toEqual([1, 1]);
    // The same nonce of another pass is a different one.
    const other = await aPass();
    const nonce = String(JSON.parse(String(body["signedMessage"])).nonce);
    await say(aMessage(other.serial, "save", { nonce }));
    expect(await holders(other.passId)).toBe(1);
  });

  test("that Google did not sign for the issuer of the object, or that has expired, is refused and changes nothing", async () => {
    const { passId, serial } = await aPass();
    const root = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    const sound = sandbox.signer.sign(aMessage(serial));
    const forged: readonly (readonly [string, JsonObject])[] = [
      ["another root key", sandbox.signer.sign(aMessage(serial), { root })],
      ["another recipient", sandbox.signer.sign(aMessage(serial), { recipient: "3388000000000000002" })],
      ["an expired key", sandbox.signer.sign(aMessage(serial), { keyEndsMs: Date.now() - 1 })],
      ["an expired message", sandbox.signer.sign(aMessage(serial, "save", { expTimeMillis: Date.now() - 1 }))],
      ["another message", { ...sound, signedMessage: JSON.stringify(aMessage(serial, "del")) }],
      ["no signature", { ...sound, signature: "" }],
      [
        "no signature of its key",
        { ...sound, intermediateSigningKey: { ...Object(sound["intermediateSigningKey"]), signatures: [] } },
      ],
    ];
    for (const [what, body] of forged) {
      const { status, headers } = await call(body);
      expect([what, status, headers.get("www-authenticate")]).toEqual([
        what,
        401,
        expect.stringContaining("callbacks"),
      ]);
    }
    expect([await holders(passId), told]).toEqual([null, []]);
    expect(await say(aMessage(serial))).toBe(200);
  });

  test("in another form is refused by the name of what is wrong", async () => {
    const { serial } = await aPass();
    const sound = sandbox.signer.sign(aMessage(serial));
    const signed = (members: JsonObject) => sandbox.signer.sign(aMessage(serial, "save", members));
    const cases: readonly (readonly [unknown, number, string])[] = [
      ["{", 400, "JSON"],
      [[], 400, "the body must be a JSON object"],
      [{ ...sound, protocolVersion: "ECv3" }, 400, "protocolVersion"],
      [{ ...sound, signature: 7 }, 400, "signature"],
      [{ ...sound, signedMessage: null }, 400, "signedMessage"],
      [{ ...sound, intermediateSigningKey: "x" }, 400, "signedKey"],
      [{ ...sound, intermediateSigningKey: { signedKey: "x", signatures: ["x"] } }, 400, "holds no key"],
      [signed({ objectId: "x" }), 400, "names no object"],
      [signed({ classId: "3388000000000000002.members" }), 400, "names no class"],
      [signed({ eventType: "" }), 400, "names no event"],
      [signed({ nonce: "n".repeat(256) }), 400, "nonce"],
      [signed({ expTimeMillis: "soon" }), 400, "no end"],
      [{ ...sound, more: "x".repeat(walletLimits.callbackBytesMax) }, 413, "larger"],
    ];
    for (const [body, status, words] of cases) {
      const answer = await call(body);
      expect([answer.status, JSON.stringify(answer.body)]).toEqual([status, expect.stringContaining(words)]);
    }
    expect(told).toEqual([]);
  });

  test("in a form that Google may send tomorrow is taken", async () => {
    const { passId, serial } = await aPass();
    const message = aMessage(serial, "save", { expTimeMillis: "999999999999999", device: { model: "x" } });
    expect((await call({ ...sandbox.signer.sign(message), traceId: 7 })).status).toBe(200);
    expect(await holders(passId)).toBe(1);
  });

  test("of a pass that is being created comes again, unless Google is known to have the pass", async () => {
    const { passId, serial } = await aStoredPass();
    const body = sandbox.signer.sign(aMessage(serial));
    const early = await call(body);
    expect([early.status, early.headers.get("retry-after")]).toEqual([503, "30"]);
    await stores.passes.finishCreate(passId);
    expect([(await call(body)).status, await holders(passId)]).toEqual([200, 1]);
    // The message that carries it has not been sent yet, as far as is known.
    const carried = await aStoredPass();
    await stores.passes.noteMade(carried.passId);
    expect([await say(aMessage(carried.serial)), await holders(carried.passId)]).toEqual([200, 1]);
  });

  test("of an object on a shared issuer is the tenant's whose pass it is", async () => {
    await must(stores.registry.createTenant({ id: "globex", name: "Globex", plan: "pro", tokens: 10 }));
    const mine = await aPass();
    const theirs = await aStoredPass({ tenantId: "globex", serial: mine.serial });
    expect(await say(aMessage(mine.serial))).toBe(200);
    expect([await holders(mine.passId), await holders(theirs.passId)]).toEqual([1, null]);
    expect(told.map(({ tenantId }) => tenantId)).toEqual(["acme"]);
  });

  test("of no pass here, or with a word that is not known, is taken and told in the log", async () => {
    const { passId, serial } = await aPass();
    expect(await say(aMessage(`${ISSUER}.elsewhere`))).toBe(200);
    expect(await say(aMessage(serial, "save", { classId: `${ISSUER}.other` }))).toBe(200);
    expect(await say(aMessage(serial, "lend"))).toBe(200);
    expect([await holders(passId), told]).toEqual([null, []]);
    const lines = front.logs.filter(({ message }) => message.includes("callback"));
    expect(lines.length).toBeGreaterThan(0);
  });

  test("leaves no nonce behind for longer than it could be repeated", async () => {
    const { passId, serial } = await aPass();
    const soon = Date.now() + 300;
    await say(aMessage(serial, "save", { expTimeMillis: soon }));
    while (Date.now() <= soon) await Bun.sleep(20);
    await say(aMessage(serial));
    const left = await front.database.db.execute(
      `select count(*) as n from pass_callbacks where pass_id = '${passId}'`,
    );
    expect(JSON.stringify(left)).toContain("1");
    expect(await holders(passId)).toBe(2);
  });
});

describe("Google's keys", () => {
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs };
  const message = () => sandbox.signer.sign(aMessage(`${ISSUER}.x`));
  let server: ReturnType<typeof Bun.serve>;
  let fetched = 0;
  let answer: () => Response = () => new Response(null, { status: 500 });
  const served = (cacheControl?: string) => () =>
    Response.json(sandbox.signer.keys(), {
      headers: cacheControl === undefined ? {} : { "cache-control": cacheControl },
    });

  beforeAll(() => {
    server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch() {
        fetched += 1;
        return answer();
      },
    });
  });
  afterAll(() => server?.stop(true));
  beforeEach(() => {
    fetched = 0;
    nowMs = 0;
  });
  const opened = (url: string | null = server.url.href) => {
    const telemetry = new QuietTelemetry();
    const keys = new CallbackKeys({ url, clock, telemetry });
    const callbacks = new GoogleCallbacks(keys, systemClock);
    return { telemetry, judge: async () => (await callbacks.open(message())).kind, callbacks };
  };

  test("are fetched once and kept as long as their answer says, within bounds", async () => {
    for (const [header, seconds] of [
      ["public, max-age=7200", 7200],
      ["no-store", 60],
      ["max-age=1", 60],
      ["max-age=999999999", 24 * 3600],
      [undefined, 3600],
    ] as const) {
      answer = served(header);
      fetched = 0;
      nowMs = 0;
      const { judge } = opened();
      expect(await Promise.all([judge(), judge(), judge()])).toEqual(["signed", "signed", "signed"]);
      nowMs = seconds * 1000 - 1;
      await judge();
      expect([header, fetched]).toEqual([header, 1]);
      nowMs += 1;
      await judge();
      expect([header, fetched]).toEqual([header, 2]);
    }
  });

  test("that cannot be had leave a callback unjudged, so that Google repeats it, and are not asked for at each call", async () => {
    answer = () => new Response("{}", { status: 503 });
    const { judge, telemetry } = opened();
    for (let i = 0; i < 20; i += 1) expect(await judge()).toBe("unjudged");
    expect(fetched).toBe(1);
    expect(telemetry.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
    answer = served();
    nowMs += walletLimits.callbackKeysRetryMs;
    expect(await judge()).toBe("signed");
    expect(await opened(null).judge()).toBe("unjudged");
    expect(await opened("http://127.0.0.1:9/").judge()).toBe("unjudged");
  });

  test("hold on for days while their address is away, or answers nonsense, and not for ever", async () => {
    answer = served("max-age=60");
    const { judge } = opened();
    await judge();
    for (const nonsense of ["", "[]", '{"keys":[]}', '{"keys":[{"keyValue":"x"}]}']) {
      answer = () => new Response(nonsense);
      nowMs += walletLimits.callbackKeysRetryMs + 60_000;
      expect(await judge()).toBe("signed");
    }
    nowMs = walletLimits.callbackKeysKeptMs - 1;
    expect(await judge()).toBe("signed");
    nowMs = walletLimits.callbackKeysKeptMs;
    expect(await judge()).toBe("unjudged");
  });

  test("are fetched anew for a callback that none of them signed, but not for each forged one", async () => {
    answer = served("max-age=86400");
    const { judge } = opened();
    expect(await judge()).toBe("signed");
    sandbox.signer.rotate();
    expect(await judge()).toBe("unsigned");
    nowMs += walletLimits.callbackKeysRenewMs;
    expect(await judge()).toBe("signed");
    const root = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    const { callbacks } = opened();
    fetched = 0;
    for (let i = 0; i < 50; i += 1) {
      expect((await callbacks.open(sandbox.signer.sign(aMessage(`${ISSUER}.x`), { root }))).kind).toBe("unsigned");
    }
    expect(fetched).toBe(1);
  });
});
