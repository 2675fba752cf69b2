import { afterEach, beforeEach, expect, test } from "bun:test";
import { generateKeyPairSync, verify } from "node:crypto";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { type GoogleOutcome, startGoogleSandbox } from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import { withPass } from "../../../src/channels/wallet/wallet-result.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { CallTurns } from "../../../src/http/call-turns.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";
import { aTenant } from "../../support/tenants.ts";
import {
  aPass,
  changed,
  GOOGLE_ISSUER,
  GoogleWorld,
  getObject,
  hurriedClock,
  ISSUER,
  ISSUER_EMAIL,
  PUBLIC_PEM,
  ready,
  text,
} from "./google-world.ts";
import { usable } from "./usable.ts";

const without = (object: JsonObject, name: string) =>
  Object.fromEntries(Object.entries(object).filter(([each]) => each !== name));
const DELIVERED = { kind: "delivered", result: { pass_id: aPass().passId } } as const;
const notified = (how: string) => ({ ...DELIVERED, result: { ...DELIVERED.result, notified: how } });
let world: GoogleWorld;
/** The outcomes of the next calls, in order. */
let outcomes: (GoogleOutcome | null)[] = [];
let calls: string[] = [];

beforeEach(async () => {
  outcomes = [];
  calls = [];
  world = await GoogleWorld.open({
    outcomeFor: ({ method, path }) => {
      calls.push(`${method} ${path}`);
      return outcomes.shift() ?? null;
    },
  });
});

afterEach(async () => {
  await world.close();
});

test("a generic pass is inserted as it is, and its class made where there is none", async () => {
  const pass = aPass();
  expect(await world.create(pass)).toEqual(DELIVERED);
  expect(world.held(pass)).toEqual(getObject(pass));
  expect(world.sandbox.resources.data("genericClass", `${ISSUER}.members`)).toEqual({ id: `${ISSUER}.members` });
  calls = [];
  expect(await world.create(aPass({ passId: "another", serial: `${ISSUER}.pass-2` }))).toMatchObject({
    kind: "delivered",
  });
  expect(calls).toEqual(["POST genericObject"]);
});

test("an event ticket without its class fails, and says which class is missing", async () => {
  const pass = aPass({ kind: "eventTicket" });
  const outcome = await world.create(pass);
  expect(outcome).toMatchObject({ kind: "failed", error: expect.stringContaining(`${ISSUER}.members`) });
  expect(world.held(pass)).toBeNull();
});

test("a creation that is repeated after a crash succeeds, and leaves one object", async () => {
  const pass = aPass({ object: { barcode: { type: "QR_CODE", value: "42" } } });
  await world.create(pass);
  world.restart();
  expect(await world.create(pass)).toEqual(DELIVERED);
  expect(world.held(pass)).toEqual(getObject(pass));
});

test("an insertion whose answer was lost is recognised, even if the pass has changed since", async () => {
  outcomes = [null, null, "lost"];
  const pass = aPass();
  expect(await world.create(pass)).toMatchObject({ kind: "retry" });
  const newer = changed(pass, (object) => ({ ...object, header: text("Gold member") }));
  expect(await world.create(newer)).toEqual(DELIVERED);
  expect(world.held(newer)).toEqual(getObject(newer));
});

test("an object_id that somebody else has used fails the job, and their object stays as it is", async () => {
  const theirs = aPass();
  await world.create(theirs);
  world.restart();
  const ours = aPass({ passId: "ours", object: { header: text("Impostor") } });
  expect(await world.create(ours)).toEqual({
    kind: "failed",
    error: `the object_id ${ours.serial} is already used`,
  });
  // An object with a part of theirs.
  const fuller = aPass({
    serial: `${ISSUER}.full`,
    object: { textModulesData: [{ id: "a", header: "A", body: "1" }] },
  });
  await world.create(fuller);
  world.restart();
  expect(await world.create(aPass({ serial: `${ISSUER}.full` }))).toMatchObject({ kind: "failed" });
  expect(world.held(theirs)).toEqual(getObject(theirs));
  expect(world.held(fuller)).toEqual(getObject(fuller));
});

test("an object that somebody has saved is not ours, even if it says the same", async () => {
  const pass = aPass();
  await world.create(pass);
  world.sandbox.resources.set("genericObject", pass.serial, { hasUsers: true });
  world.restart();
  expect(await world.create(pass)).toMatchObject({ kind: "failed" });
});

test("an update replaces lists, takes away what the pass has no more, and keeps the rest", async () => {
  const module = (id: string, body: string) => ({ id, header: id, body });
  const pass = aPass({
    object: { textModulesData: [module("a", "1"), module("b", "2")], subheader: text("Since 2020") },
  });
  await world.create(pass);
  const newer = ready(
    changed(pass, (object) => ({ ...without(object, "subheader"), textModulesData: [module("a", "3")] })),
  );
  expect(await world.update(newer)).toEqual(DELIVERED);
  expect(world.held(newer)).toEqual(getObject(newer));
});

test("of a version that Google has, nothing is sent again", async () => {
  const pass = ready(changed(aPass(), (object) => ({ ...object, header: text("Gold member") })));
  await world.create({ ...pass, state: "creating" });
  calls = [];
  expect(await world.update(pass)).toEqual(DELIVERED);
  expect(calls).toEqual([]);
});

test("no pass is changed before its creation has ended", async () => {
  const theirs = aPass();
  await world.create(theirs);
  const hijacker = changed(aPass({ passId: "hijacker" }), (object) => ({ ...object, header: text("Mine") }));
  expect(await world.update(hijacker)).toMatchObject({ kind: "retry", isUncounted: true });
  expect(world.held(theirs)).toEqual(getObject(theirs));
});

test("a pass that is gone from Google cannot be updated, and says so", async () => {
  const pass = aPass();
  await world.create(pass);
  world.sandbox.resources.remove("genericObject", pass.serial);
  expect(await world.update(ready(changed(pass, (object) => object)))).toMatchObject({ kind: "failed" });
});

test("a message alerts the holder once, however often its update is delivered", async () => {
  const pass = aPass();
  await world.create(pass);
  const newer = ready(changed(pass, (object) => ({ ...object, header: text("Court 3") })));
  outcomes = [null, "lost"];
  expect(await world.update(newer, "Play starts on court 3")).toMatchObject({ kind: "retry" });
  expect(await world.update(newer, "Play starts on court 3")).toEqual(notified("alerted"));
  world.restart();
  expect(await world.update(newer, "Play starts on court 3")).toEqual(notified("alerted"));
  expect(world.messages(pass)).toEqual([["Play starts on court 3", "TEXT_AND_NOTIFY"]]);
});

test("a message alerts though a version repeats, because the registry was restored from before it", async () => {
  const pass = aPass();
  await world.create(pass);
  const newer = ready(changed(pass, (object) => ({ ...object, header: text("Court 3") })));
  await world.updateBy("before-the-restore", newer, "Play starts on court 3");
  world.restart();
  await world.updateBy("after-the-restore", newer, "Play starts on court 4");
  expect(world.messages(pass).map(([message]) => message)).toEqual([
    "Play starts on court 3",
    "Play starts on court 4",
  ]);
});

test("a message alerts once too where the pass has messages of its own", async () => {
  const own = { id: "own", header: "Hi", body: "Welcome", messageType: "TEXT" };
  const pass = aPass({ object: { messages: [own] } });
  await world.create(pass);
  const newer = ready(changed(pass, (object) => ({ ...object, header: text("Court 3") })));
  await world.update(newer, "Now");
  world.restart();
  expect(await world.update(newer, "Now")).toEqual(notified("alerted"));
  expect(world.messages(pass)).toEqual([
    ["Welcome", "TEXT"],
    ["Now", "TEXT_AND_NOTIFY"],
  ]);
});

test("beyond the alerts that Google allows, a message is shown without one and the update succeeds", async () => {
  let pass = ready(aPass());
  await world.create(aPass());
  for (const body of ["one", "two", "three", "four"]) {
    pass = changed(pass, (object) => ({ ...object, header: text(body) }));
    expect(await world.update(pass, body)).toEqual(notified(body === "four" ? "silent" : "alerted"));
    // The same for a repeated delivery.
    world.restart();
    expect(await world.update(pass, body)).toEqual(notified(body === "four" ? "silent" : "alerted"));
  }
  outcomes = [null, "denied", "denied"];
  pass = changed(pass, (object) => ({ ...object, header: text("five") }));
  expect(await world.update(pass, "five")).toEqual(notified("no"));
  expect(world.messages(pass)).toEqual([
    ["one", "TEXT_AND_NOTIFY"],
    ["two", "TEXT_AND_NOTIFY"],
    ["three", "TEXT_AND_NOTIFY"],
    ["four", "TEXT"],
  ]);
});

test("a call that met another one at the same object is tried again, and the pass is what the update says", async () => {
  const pass = aPass();
  outcomes = [null, null, "aborted"];
  expect(await world.create(pass)).toMatchObject({ kind: "retry" });
  expect(await world.create(pass)).toEqual(DELIVERED);
  const closed = ready(changed(pass, (object) => ({ ...object, state: "EXPIRED" })));
  outcomes = ["aborted"];
  expect(await world.update(closed, "Closed")).toMatchObject({ kind: "retry" });
  outcomes = [null, "aborted"];
  expect(await world.update(closed, "Closed")).toMatchObject({ kind: "retry" });
  expect(await world.update(closed, "Closed")).toEqual(notified("alerted"));
  expect(world.held(pass)).toMatchObject({ state: "EXPIRED" });
  expect(world.messages(pass)).toEqual([["Closed", "TEXT_AND_NOTIFY"]]);
});

test("while this machine's clock is wrong, passes wait, the log says so, and then they go", async () => {
  let aheadMs = 2 * 24 * 60 * 60_000;
  const clock = { ...hurriedClock, nowMs: () => hurriedClock.nowMs() + aheadMs };
  const early = await GoogleWorld.open({ clock });
  try {
    const said: unknown[] = [];
    early.telemetry.log = (...line: unknown[]) => void said.push(line);
    for (const ms of [aheadMs, -aheadMs]) {
      aheadMs = ms;
      expect(await early.create(aPass())).toMatchObject({ kind: "away" });
    }
    expect(JSON.stringify(said)).toContain("the clock of this machine is wrong");
    aheadMs = 0;
    expect(await early.create(aPass())).toEqual(DELIVERED);
  } finally {
    await early.close();
  }
});

test("one token serves many calls, and a token that was withdrawn is asked for anew", async () => {
  const passes = ["a", "b", "c", "d"].map((name) => aPass({ passId: name, serial: `${ISSUER}.${name}` }));
  expect(await Promise.all(passes.map((pass) => world.create(pass)))).toMatchObject(
    passes.map(() => ({ kind: "delivered" })),
  );
  expect(world.sandbox.tokens.granted).toBe(1);
  world.sandbox.tokens.withdraw();
  expect(await world.create(aPass())).toEqual(DELIVERED);
  expect(world.sandbox.tokens.granted).toBe(2);
});

test("a service account that the token endpoint refuses fails the job, and no key is told", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const privateKeyPem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  for (const pem of [privateKeyPem, "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n"]) {
    const google = { ...GOOGLE_ISSUER, privateKeyPem: pem };
    const tenant = aTenant({ wallet: { ...world.tenant.wallet, google } });
    const outcome = await world.create(aPass(), tenant);
    expect(outcome).toMatchObject({ kind: "failed", error: expect.stringContaining("service account") });
    expect(JSON.stringify(outcome)).not.toContain("PRIVATE");
    expect(await world.wallet.status(tenant, aPass())).toEqual({ why: expect.stringContaining("service account") });
  }
});

test("whoever names another's service account with a key of their own does not get its token", async () => {
  expect(await world.create(aPass())).toEqual(DELIVERED);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const privateKeyPem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const google = { ...GOOGLE_ISSUER, privateKeyPem };
  const impostor = aTenant({ tenantId: "impostor", wallet: { ...world.tenant.wallet, google } });
  calls = [];
  const theirs = aPass({ passId: "theirs", tenantId: "impostor", serial: `${ISSUER}.theirs` });
  expect(await world.create(theirs, impostor)).toMatchObject({
    kind: "failed",
    error: expect.stringContaining("service account"),
  });
  expect(calls).toEqual([]);
  expect(await world.create(aPass({ passId: "another", serial: `${ISSUER}.pass-2` }))).toMatchObject({
    kind: "delivered",
  });
});

test("a temporary failure is retried, a lasting one fails the job, and the tenant is told only of refusals", async () => {
  await world.create(aPass({ passId: "first", serial: `${ISSUER}.first` }));
  for (const [outcome, expected] of [
    ["throttled", { kind: "retry", afterMs: 1_000 }],
    ["broken", { kind: "away" }],
    ["lost", { kind: "retry", isSilence: true }],
    ["denied", { kind: "failed", error: expect.stringContaining("may not act for the issuer") }],
  ] as const) {
    outcomes = [outcome];
    expect(await world.create(aPass({ passId: outcome, serial: `${ISSUER}.${outcome}` }))).toMatchObject(expected);
  }
  const unsound = aPass({ object: { state: "SLEEPING" } });
  expect(await world.create(unsound)).toMatchObject({ kind: "failed", error: expect.stringContaining("state") });
});

test("while Google or its token endpoint is away, jobs wait and callers get an error", async () => {
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  for (const urls of [{ apiUrl: nowhere }, { tokenUrl: `${nowhere}/token` }]) {
    world.wallet = world.newWallet(urls);
    expect(await world.create(aPass())).toMatchObject({ kind: "away" });
    expect(await world.wallet.status(world.tenant, aPass())).toEqual({ why: expect.stringContaining("try again") });
  }
});

test("while Google does not answer, jobs fail at once instead of waiting, until it does", async () => {
  let isThere = false;
  let asked = 0;
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        asked += 1;
        if (!isThere) socket.end();
      },
      data: (socket) => {
        const body = '{"error":{"message":"no such object"}}';
        socket.write(`HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
        socket.end();
      },
    },
  });
  try {
    world.wallet = world.newWallet({ apiUrl: `http://127.0.0.1:${server.port}` }, systemClock);
    for (let i = 0; i < 3; i += 1) expect(await world.create(aPass())).toMatchObject({ isSilence: true });
    const before = asked;
    for (let i = 0; i < 20; i += 1) expect(await world.create(aPass())).toMatchObject({ kind: "away" });
    expect(asked).toBe(before);
    expect(world.wallet.health()).toEqual({ up: false, sinceMs: expect.any(Number) });
    isThere = true;
    await eventually("somebody answers", async () => (await world.create(aPass())).kind === "failed");
    expect(world.wallet.health().up).toBe(true);
  } finally {
    server.stop(true);
  }
});

test("an abort ends a delivery that gets no answer", async () => {
  const silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) });
  try {
    const url = `http://127.0.0.1:${silent.port}`;
    for (const urls of [{ apiUrl: url }, { tokenUrl: `${url}/token` }]) {
      const aborting = new AbortController();
      const payload = { action: "create", passId: "p", version: 1, jobId: "j" } as const;
      const outcome = world.newWallet(urls).deliver(aPass(), payload, world.tenant, aborting.signal);
      aborting.abort();
      expect(await outcome).toMatchObject({ kind: "retry" });
    }
  } finally {
    await silent.stop(true);
  }
});

test("an answer without end is not taken", async () => {
  const flood = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(1024 * 1024).fill(32)) })),
  });
  try {
    world.wallet = world.newWallet({ apiUrl: `http://127.0.0.1:${flood.port}` });
    expect(await world.create(aPass())).toMatchObject({ kind: "retry" });
  } finally {
    await flood.stop(true);
  }
});

test("the status is Google's own: state in upper case, users, and not_found where the object is gone", async () => {
  const pass = aPass({ object: { state: "COMPLETED" } });
  await world.create(pass);
  const status = () => world.wallet.status(world.tenant, pass);
  expect(await status()).toEqual({ googleStatus: "COMPLETED", hasUsers: false, isInstalled: false });
  world.sandbox.resources.set("genericObject", pass.serial, { hasUsers: true });
  expect(await status()).toEqual({ googleStatus: "COMPLETED", hasUsers: true, isInstalled: true });
  world.sandbox.resources.set("genericObject", pass.serial, { hasUsers: false, hasLinkedDevice: true });
  expect(await status()).toEqual({ googleStatus: "COMPLETED", hasUsers: false, isInstalled: true });
  world.sandbox.resources.remove("genericObject", pass.serial);
  expect(await status()).toEqual({ googleStatus: "not_found", hasUsers: false, isInstalled: false });
});

test("a save link is signed by the service account, names only the object and its class, and stays the same", () => {
  const pass = aPass({
    kind: "eventTicket",
    object: { textModulesData: [{ id: "a", header: "A", body: "x".repeat(5000) }] },
  });
  const link = usable(world.wallet.buildLink(pass, world.tenant));
  expect(world.newWallet().buildLink(pass, world.tenant)).toBe(link);
  const [, header = "", claims = "", signature = ""] =
    /^https:\/\/pay\.example\.com\/save\/([^./]+)\.([^./]+)\.([^./]+)$/.exec(link) ?? [];
  expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({ alg: "RS256", typ: "JWT" });
  expect(JSON.parse(Buffer.from(claims, "base64url").toString())).toEqual({
    iss: ISSUER_EMAIL,
    aud: "google",
    typ: "savetowallet",
    iat: Math.floor(Number.parseInt("01936f2e7c1a", 16) / 1000),
    payload: { eventTicketObjects: [{ id: pass.serial, classId: `${ISSUER}.members` }] },
    origins: [],
  });
  expect(verify("sha256", Buffer.from(`${header}.${claims}`), PUBLIC_PEM, Buffer.from(signature, "base64url"))).toBe(
    true,
  );
  expect(link.length).toBeLessThan(1_800);
});

test("without credentials a job fails and callers are told where they are set", async () => {
  const bare = aTenant();
  expect(await world.create(aPass(), bare)).toMatchObject({
    kind: "failed",
    error: expect.stringContaining("credentials"),
  });
  const why = expect.stringContaining("/credentials/google");
  expect(world.wallet.buildLink(aPass(), bare)).toEqual({ why });
  expect(await world.wallet.status(bare, aPass())).toEqual({ why });
});

test("a pass of another issuer than the tenant's is not touched, and no link to it is signed", async () => {
  for (const issuer of ["3388000000000000002", `${ISSUER}0`]) {
    const pass = aPass({ serial: `${issuer}.pass` });
    const why = expect.stringContaining("another Google issuer");
    expect(await world.create(pass)).toMatchObject({ kind: "failed", error: why });
    expect(world.wallet.buildLink(pass, world.tenant)).toEqual({ why, isForGood: true });
  }
  expect(calls).toEqual([]);
});

test("the job of a pass whose issuer was replaced is shown without a link, and one without credentials says so", async () => {
  const pass = aPass({ serial: "3388000000000000002.pass" });
  const bundle = () => Promise.reject(new Error("a Google pass has none"));
  const ports = {
    passes: { find: async () => pass, bundle },
    bundles: { getBundle: bundle },
    saveLinks: world.wallet,
    fileLinks: { createLink: () => ({ url: "", token: "" }) },
    fileTurns: new CallTurns(walletLimits.tenantFileReads, systemClock),
  };
  const result = { pass_id: pass.passId };
  const job = {
    jobId: "j",
    tenantId: "acme",
    channel: "wallet",
    status: "success",
    attempts: 1,
    result,
    events: [],
  } as const;
  expect(await withPass(ports, world.tenant, job)).toEqual(job);
  await expect(withPass(ports, aTenant(), job)).rejects.toMatchObject({ status: 500 });
});

test("the ids of the sandbox choose what happens, and it passes where it should", async () => {
  const plain = await startGoogleSandbox({ clock: hurriedClock });
  try {
    world.wallet = world.newWallet(plain);
    await world.create(aPass({ passId: "first", serial: `${ISSUER}.first` }));
    for (const [end, expected] of [
      ["throttled", ["retry", "retry", "delivered"]],
      ["broken", ["away", "away", "delivered"]],
      ["lost", ["retry", "delivered"]],
      ["denied", ["failed"]],
    ] as const) {
      const pass = aPass({ passId: end, serial: `${ISSUER}.pass-${end}` });
      for (const kind of expected) expect((await world.create(pass)).kind).toBe(kind);
    }
    const [newest] = plain.inbox.messages(`${ISSUER}.pass-lost`, 10);
    expect(newest).toMatchObject({ channel: "wallet", from: ISSUER_EMAIL, subject: "POST genericObject" });
    expect(JSON.parse(newest?.source ?? "")).toMatchObject({ id: `${ISSUER}.pass-lost` });
  } finally {
    await plain.stop();
  }
});
