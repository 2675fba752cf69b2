import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { UnavailableError } from "../../src/domain/errors.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { shownAttempt, shownWebhook } from "../../src/webhooks/schemas.ts";
import { webhookAttempts } from "../../src/webhooks/tables.ts";
import { eventually } from "../support/eventually.ts";
import { must } from "../support/must.ts";
import { eventsIn, isSignedWith, type Receiver } from "./receiver.ts";
import { SenderWorld } from "./sender-world.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const TENANTS = ["acme", "globex", "initech", "umbrella"];

let world: SenderWorld;
beforeAll(async () => {
  world = await SenderWorld.open(TENANTS);
}, 300_000);
afterEach(() => world.clear(), 90_000);
afterAll(() => world.undo.run(), 90_000);

const has = (receiver: Receiver, ids: readonly number[]) => () => receiver.eventIds.length >= ids.length;

/** Waits until they are delivered and that is stored: until then the process may deliver them again. */
const untilNoted = (tenantId: string, id: string, ids: readonly number[]) =>
  eventually("they are noted", async () => (await world.shown(tenantId, id)).progress.events.position === ids.at(-1));

/** Waits until a call has failed, and sets the clock forward to its repeat. Resolves to whether there will be one. */
async function toTheRepeat(tenantId: string, id: string): Promise<boolean> {
  const { nextAtMs, disabled } = await eventually("a call has failed", async () => {
    const { progress } = await world.shown(tenantId, id);
    return progress.disabled !== null || (progress.nextAtMs ?? 0) > world.clock.nowMs() ? progress : null;
  });
  world.clock.forward(Math.max(0, (nextAtMs ?? 0) - world.clock.nowMs() + 1));
  return disabled === null;
}

test("each event arrives once, signed, in order, one call at a time, under the names of the events API", async () => {
  const receiver = world.receiver();
  const { id, secret } = await world.webhook("acme", receiver.url);
  const process = world.start();
  const ids = [...world.record("acme", 3)];
  await eventually("the first ones", has(receiver, ids));
  ids.push(...world.record("acme", 250, { channel: "wallet" }));
  await untilNoted("acme", id, ids);
  expect(receiver.eventIds).toEqual(ids);
  expect(receiver.mostInFlight).toBe(1);
  expect(receiver.calls.every((call) => isSignedWith(secret, call))).toBe(true);
  expect(new Set(receiver.calls.map((call) => call.id)).size).toBe(ids.length);
  const [first] = receiver.calls;
  expect(first?.id).toBe(`${id}_${ids[0]}`);
  expect(JSON.parse(first?.text ?? "")).toEqual({
    type: "email.sent",
    timestamp: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
    data: {
      event_id: ids[0],
      job_id: expect.any(String),
      channel: "email",
      event_type: "sent",
      result: {},
      created_at: expect.stringMatching(/^\d{4}-[^.]*Z$/),
    },
  });
  await process.stop();
  expect((await world.shown("acme", id)).progress).toMatchObject({ events: { position: ids.at(-1) }, failures: 0 });
  const { items } = await must(world.stores.registry.webhooks.attempts("acme", id, { cursor: null, limit: 10 }));
  expect(items[0]).toMatchObject({ status: 204, error: null, events: 1, lastEventId: ids.at(-1), isTest: false });
});

test("for a day after a rotation both secrets sign", async () => {
  const receiver = world.receiver();
  const { id, secret } = await world.webhook("globex", receiver.url);
  world.start();
  const { secret: anew } = await must(world.stores.registry.webhooks.rotate("globex", id));
  expect(anew).not.toBe(secret);
  const call = async () => {
    receiver.calls.length = 0;
    world.record("globex", 1);
    await eventually("it is told", () => receiver.calls.length > 0);
    return receiver.calls[0] ?? { id: "", text: "", headers: {} };
  };
  await eventually("the process knows the new one", async () => isSignedWith(anew, await call()));
  expect(isSignedWith(secret, await call())).toBe(true);
  expect((await call()).headers["webhook-signature"]?.split(" ")).toHaveLength(2);
  world.clock.forward(25 * HOUR_MS);
  expect((await call()).headers["webhook-signature"]?.split(" ")).toHaveLength(1);
});

test("arrays have as many events as the webhook takes, and only those that it asked for", async () => {
  const receiver = world.receiver();
  const rare = world.receiver();
  await world.webhook("globex", receiver.url, { batchMax: 100 });
  await world.webhook("globex", rare.url, { batchMax: 500, eventTypes: ["bounced"], channels: ["email"] });
  const before = world.record("globex", 230);
  world.start();
  const bounced = world.record("globex", 2, { type: "bounced" });
  const others = world.record("globex", 2, { type: "bounced", channel: "whatsapp" });
  const all = [...before, ...bounced, ...others];
  await eventually("all of them", has(receiver, all));
  await eventually("the bounced ones", has(rare, bounced));
  expect(receiver.eventIds).toEqual(all);
  expect(receiver.calls.map((call) => eventsIn(call).length).slice(0, 2)).toEqual([100, 100]);
  expect(rare.eventIds).toEqual(bounced);
});

test("a process that dies between the answer and its note leaves no gap: its successor tells the same under the same ids", async () => {
  const receiver = world.receiver();
  const { id } = await world.webhook("initech", receiver.url);
  // The answers came, but were not stored.
  const dead = world.start({ store: world.storeWith({ note: () => new Promise(() => undefined) }) });
  // Few enough for one turn, however slow the machine is.
  const ids = world.record("initech", 5);
  await eventually("the first process has told them", has(receiver, ids));
  await dead.stop();
  expect((await world.shown("initech", id)).progress.events.position).toBeLessThan(ids[0] ?? 0);
  world.start();
  const later = world.record("initech", 5);
  await eventually("the next process has told all", () => receiver.calls.length >= 2 * ids.length + later.length);
  const told = receiver.calls.map((call) => call.id);
  expect(told.slice(0, 5)).toEqual(told.slice(5, 10));
  expect(receiver.eventIds).toEqual([...ids, ...ids, ...later]);
});

test("a webhook that is catching up when its shard is handed over is told nothing twice", async () => {
  const receiver = world.receiver();
  receiver.reply = () => Bun.sleep(50).then(() => new Response());
  await world.webhook("initech", receiver.url);
  const store = world.store();
  let calledBefore = 0;
  const process = world.start({
    store: world.storeWith({
      async note(notes) {
        const noted = await store.note(notes);
        calledBefore = receiver.calls.length;
        return noted;
      },
    }),
  });
  const ids = world.record("initech", 200);
  await eventually("its second turn has begun", () => calledBefore > 0 && receiver.calls.length > calledBefore);
  await process.stop();
  receiver.reply = () => new Response();
  world.start();
  await eventually("the next process has told the rest", () => receiver.eventIds.at(-1) === ids.at(-1));
  expect(receiver.eventIds).toEqual(ids);
});

test("a receiver that was down for a day gets each event of it in order, once it is back", async () => {
  const receiver = world.receiver();
  receiver.reply = () => new Response("down", { status: 503 });
  const { id } = await world.webhook("umbrella", receiver.url, { batchMax: 50 });
  world.start();
  const ids = [...world.record("umbrella", 10)];
  const backMs = world.clock.nowMs() + 24 * HOUR_MS;
  while (world.clock.nowMs() < backMs) {
    await toTheRepeat("umbrella", id);
    ids.push(...world.record("umbrella", 10));
  }
  const { progress } = await world.shown("umbrella", id);
  expect(progress).toMatchObject({ disabled: null, lastError: "the receiver answered 503" });
  expect(progress.failures).toBeGreaterThan(20);
  // The failed call is repeated unchanged.
  expect(new Set(receiver.calls.map((call) => call.id)).size).toBe(1);
  expect(new Set(receiver.calls.map(({ text }) => text)).size).toBe(1);
  receiver.reply = () => new Response(null, { status: 200 });
  const failed = receiver.calls.length;
  await eventually("all of them", async () => {
    const { failures, nextAtMs } = (await world.shown("umbrella", id)).progress;
    if (failures === 0) return receiver.calls.slice(failed).flatMap(eventsIn).length >= ids.length;
    world.clock.forward(Math.max(0, (nextAtMs ?? 0) - world.clock.nowMs() + 1));
    return false;
  });
  expect(Array.from(new Set(receiver.eventIds))).toEqual(ids);
  await eventually("it is well", async () => (await world.shown("umbrella", id)).progress.failures === 0);
}, 300_000);

test("a replay tells a span again, under the same ids, and then what came meanwhile", async () => {
  const receiver = world.receiver();
  const { id } = await world.webhook("acme", receiver.url);
  world.start();
  const ids = world.record("acme", 30);
  await eventually("all of them", has(receiver, ids));
  const told = receiver.calls.map((call) => call.id);
  receiver.calls.length = 0;
  const span = { afterEventId: ids[4] ?? 0, throughEventId: ids[9] ?? 0 };
  await untilNoted("acme", id, ids);
  // Before the process learns of the replay it would deliver new events at once.
  const begun = Promise.withResolvers<void>();
  receiver.reply = () => begun.promise.then(() => new Response());
  const replayed = await must(world.stores.registry.webhooks.replay("acme", id, span));
  expect(replayed.progress.events.replay).toEqual(span);
  await eventually("the span has begun", () => receiver.calls.length > 0);
  const later = world.record("acme", 2);
  begun.resolve();
  await eventually("the span and the later ones", () => receiver.calls.length >= 7);
  expect(receiver.eventIds).toEqual([...ids.slice(5, 10), ...later]);
  expect(receiver.calls.map((call) => call.id).slice(0, 5)).toEqual(told.slice(5, 10));
  await eventually("it has ended", async () => (await world.shown("acme", id)).progress.events.replay === null);
  receiver.calls.length = 0;
  const from = { afterEventId: ids[27] ?? 0, throughEventId: null };
  await must(world.stores.registry.webhooks.replay("acme", id, from));
  await eventually("everything behind an event", () => receiver.calls.length >= 4);
  expect(receiver.eventIds).toEqual([...ids.slice(28), ...later]);
});

test("an event that its receiver cannot take is named, and a replay behind it goes on at once", async () => {
  const receiver = world.receiver();
  const { id } = await world.webhook("acme", receiver.url);
  world.start();
  const ids = world.record("acme", 5);
  const [, , bad = 0] = ids;
  receiver.reply = (call) =>
    new Response("no such invoice", { status: eventsIn(call).some(({ data }) => data.event_id === bad) ? 422 : 200 });
  const blocked = async () => shownWebhook(await world.shown("acme", id)).blocked_by;
  await eventually("it stands still", async () => (await blocked()) !== null);
  expect(await blocked()).toMatchObject({ through_event_id: bad });
  const page = await world.stores.registry.webhooks.attempts("acme", id, { limit: 1, cursor: null });
  if (page.kind !== "done") throw new Error("the webhook has a log");
  const [attempt] = page.value.items.map(shownAttempt);
  expect(attempt).toMatchObject({ status: 422, answer: "no such invoice", last_event_id: bad });
  expect(attempt?.request_headers["webhook-id"]).toBe(receiver.calls.at(-1)?.id);
  await must(world.stores.registry.webhooks.replay("acme", id, { afterEventId: bad, throughEventId: null }));
  await eventually("what comes behind it", () => receiver.eventIds.includes(ids[4] ?? 0));
  expect([await blocked(), (await world.shown("acme", id)).progress.failures]).toEqual([null, 0]);
  expect(receiver.eventIds.filter((eventId) => eventId > bad)).toEqual(ids.slice(3));
});

test("what a webhook did not want before is told by a replay once it wants it", async () => {
  const receiver = world.receiver();
  const { id } = await world.webhook("initech", receiver.url, { eventTypes: ["bounced"] });
  world.start();
  const bounced = world.record("initech", 1, { type: "bounced" });
  await untilNoted("initech", id, bounced);
  const unwanted = world.record("initech", 3);
  await must(world.stores.registry.webhooks.change("initech", id, { eventTypes: null }));
  const span = { afterEventId: bounced[0] ?? 0, throughEventId: null };
  await must(world.stores.registry.webhooks.replay("initech", id, span));
  await eventually("they are told", has(receiver, [...bounced, ...unwanted]));
  expect(receiver.eventIds).toEqual([...bounced, ...unwanted]);
});

test("the log of calls keeps the last five hundred of a week", async () => {
  await world.database.db.delete(webhookAttempts);
  const { id } = await world.webhook("initech", "https://initech.test/");
  const numbers = async () => {
    const rows = await world.database.db.select({ name: webhookAttempts.messageId }).from(webhookAttempts);
    return rows.map(({ name }) => Number(name)).toSorted((one, other) => one - other);
  };
  const weekAgo = new Date(world.clock.nowMs() - 7 * 24 * HOUR_MS).toISOString();
  await world.database.db.execute(sql`
    INSERT INTO webhook_attempts (tenant_id, webhook_id, at, is_test, message_id, events, status, ms)
    SELECT 'initech', ${id}, ${weekAgo}::timestamptz + make_interval(mins => n - 10), false, n::text, 1, 204, 1
    FROM generate_series(1, 400) n`);
  await world.store().trim(id);
  expect(await numbers()).toEqual(Array.from({ length: 390 }, (_, n) => n + 11));
  await world.database.db.execute(sql`
    INSERT INTO webhook_attempts (tenant_id, webhook_id, at, is_test, message_id, events, status, ms)
    SELECT 'initech', ${id}, now(), false, n::text, 1, 204, 1 FROM generate_series(401, 600) n`);
  await world.store().trim(id);
  expect(await numbers()).toEqual(Array.from({ length: 500 }, (_, n) => n + 101));
});

test("after three days without a success a webhook is disabled, with notice, and goes on from there when it is enabled", async () => {
  const receiver = world.receiver();
  receiver.reply = () => new Response(null, { status: 500 });
  const { id } = await world.webhook("acme", receiver.url);
  world.start();
  const ids = world.record("acme", 3);
  while (await toTheRepeat("acme", id));
  const { progress } = await world.shown("acme", id);
  expect(progress.disabled?.reason).toBe("failing");
  const days = ((progress.disabled?.atMs ?? 0) - (progress.failingSinceMs ?? 0)) / (24 * HOUR_MS);
  expect([days >= 3, days < 3.2]).toEqual([true, true]);
  expect(receiver.calls.length).toBeGreaterThan(20);
  expect(world.disabled).toEqual([expect.objectContaining({ tenantId: "acme", webhookId: id, reason: "failing" })]);
  expect(await world.store().disabled()).toEqual([expect.objectContaining({ webhookId: id, reason: "failing" })]);
  receiver.calls.length = 0;
  receiver.reply = () => new Response(null, { status: 200 });
  await must(world.stores.registry.webhooks.enable("acme", id));
  const later = world.record("acme", 1);
  await eventually("all of them", has(receiver, [...ids, ...later]));
  expect(receiver.eventIds).toEqual([...ids, ...later]);
}, 300_000);

test("a webhook that wants no more of what had failed is well again, and later has three days as any other", async () => {
  const receiver = world.receiver();
  receiver.reply = () => new Response(null, { status: 503 });
  const { id } = await world.webhook("acme", receiver.url);
  const change = (eventTypes: ["bounced"] | ["failed"]) =>
    must(world.stores.registry.webhooks.change("acme", id, { eventTypes }));
  world.start();
  world.record("acme", 1, { type: "bounced" });
  await eventually("the call has failed", async () => (await world.shown("acme", id)).progress.failures === 1);
  await change(["failed"]);
  await toTheRepeat("acme", id);
  const well = { failures: 0, failingSinceMs: null, nextAtMs: null, lastError: null };
  const { progress } = await eventually("it is well", async () => {
    // It may learn of the change only after the repeat, and reads it a moment later.
    world.clock.forward(SECOND_MS);
    const webhook = await world.shown("acme", id);
    return webhook.progress.failures === 0 ? webhook : null;
  });
  expect(progress).toMatchObject({ ...well, events: { retryThrough: null } });
  world.clock.forward(4 * 24 * HOUR_MS);
  const wanted = world.record("acme", 1, { type: "failed" });
  await eventually("the first wanted event fails", async () => (await world.shown("acme", id)).progress.failures === 1);
  expect((await world.shown("acme", id)).progress.disabled).toBeNull();
  receiver.calls.length = 0;
  receiver.reply = () => new Response();
  await toTheRepeat("acme", id);
  await untilNoted("acme", id, wanted);
  expect(receiver.eventIds).toEqual(wanted);
});

test("one that is disabled at each call is trimmed each time", async () => {
  const receiver = world.receiver();
  receiver.reply = () => new Response(null, { status: 410 });
  const { id } = await world.webhook("acme", receiver.url);
  let trimmed = 0;
  const trim = async (one: string) => void (trimmed += one === id ? 1 : 0);
  world.start({ store: world.storeWith({ trim }) });
  for (const round of [1, 2]) {
    world.record("acme", 1);
    await eventually("it is disabled and trimmed", () => trimmed === round);
    await must(world.stores.registry.webhooks.enable("acme", id));
  }
});

test("410 disables at once; a redirect is not followed; Retry-After is kept to", async () => {
  const [gone, moved, target, busy] = [world.receiver(), world.receiver(), world.receiver(), world.receiver()];
  gone.reply = () => new Response(null, { status: 410 });
  moved.reply = () => Response.redirect(target.url, 307);
  busy.reply = () => new Response(null, { status: 429, headers: { "retry-after": "1800" } });
  const hooks = await Promise.all([gone, moved, busy].map(({ url }) => world.webhook("initech", url)));
  const [ofGone, ofMoved, ofBusy] = hooks.map(({ id }) => id);
  world.start();
  world.record("initech", 1);
  const progress = async (id = "") => (await world.shown("initech", id)).progress;
  await eventually("it is gone", async () => (await progress(ofGone)).disabled?.reason === "gone");
  await eventually("it was redirected", async () => (await progress(ofMoved)).failures > 0);
  await eventually("it is busy", async () => (await progress(ofBusy)).failures > 0);
  expect((await progress(ofMoved)).lastError).toBe("the receiver answered 307: redirects are not followed");
  expect(target.calls).toEqual([]);
  const { nextAtMs, failingSinceMs } = await progress(ofBusy);
  expect((nextAtMs ?? 0) - (failingSinceMs ?? 0)).toBe(30 * MINUTE_MS);
  world.clock.forward(HOUR_MS);
  await eventually("both others are tried again", () => moved.calls.length > 1 && busy.calls.length > 1);
  expect(gone.calls).toHaveLength(1);
  const told = async () => (await world.store().disabled()).filter(({ webhookId }) => webhookId === ofGone);
  world.clock.forward(6.9 * 24 * HOUR_MS);
  expect(await told()).toMatchObject([{ tenantId: "initech", reason: "gone" }]);
  world.clock.forward(0.1 * 24 * HOUR_MS);
  expect(await told()).toEqual([]);
});

test("receivers that never answer cost other tenants nothing", async () => {
  const [hanging, well] = [world.receiver(), world.receiver()];
  const { promise: end, resolve: release } = Promise.withResolvers<void>();
  hanging.reply = () => end.then(() => new Response());
  await Promise.all(Array.from({ length: 8 }, () => world.webhook("umbrella", hanging.url)));
  await world.webhook("globex", well.url);
  world.start();
  world.record("umbrella", 1);
  await eventually("its share hangs", () => hanging.inFlight === 4);
  const ids = world.record("globex", 20);
  await eventually("the other tenant is told", has(well, ids));
  expect(well.eventIds).toEqual(ids);
  expect([hanging.inFlight, hanging.mostInFlight]).toEqual([4, 4]);
  // After fifteen seconds each of them counts as failed, and the rest gets its turn.
  world.clock.forward(16_000);
  await eventually("the others of the tenant had their turn", () => hanging.calls.length >= 8);
  release();
});

test("while a store is away nothing is lost, and a tenant's changes are seen at once", async () => {
  const receiver = world.receiver();
  world.start();
  const { id } = await world.webhook("globex", receiver.url);
  await untilNoted("globex", id, world.record("globex", 1));
  receiver.calls.length = 0;
  world.telemetry.lines.length = 0;
  world.events.failure = new UnavailableError("away");
  const ids = world.record("globex", 3);
  await eventually("it was tried", () => world.telemetry.lines.some((line) => line.includes("could not be read")));
  expect(receiver.calls).toEqual([]);
  world.events.failure = null;
  world.database.isAway = true;
  world.clock.forward(6_000);
  await eventually("all of them", has(receiver, ids));
  await eventually("it was to be noted", () => world.telemetry.lines.some((line) => line.includes("written down")));
  world.database.isAway = false;
  world.clock.forward(6_000);
  await untilNoted("globex", id, ids);
  expect(receiver.eventIds).toEqual(ids);
  await must(world.stores.registry.webhooks.change("globex", id, { eventTypes: ["bounced"] }));
  await eventually("the change is known", async () => {
    receiver.calls.length = 0;
    world.record("globex", 1);
    const bounced = world.record("globex", 1, { type: "bounced" });
    await eventually("the bounced one", () => receiver.eventIds.includes(bounced[0] ?? 0));
    return receiver.eventIds.length === 1;
  });
});

test("two thousand webhooks without news ask for nothing but a look at the registry every minute", async () => {
  const quiet = await SenderWorld.open([]);
  await must(quiet.stores.registry.createTenant({ id: "quiet-0", name: "Quiet" }));
  await seedWebhooks(quiet, { tenants: 200, ofEach: 10 });
  const store = quiet.store();
  let reads = 0;
  const process = quiet.start({
    store: quiet.storeWith({
      ofShards: (shards) => {
        reads += 1;
        return store.ofShards(shards);
      },
    }),
  });
  await eventually("they are known", () => reads > 0 && quiet.events.follows > 0);
  const [readsBefore, followsBefore] = [reads, quiet.events.follows];
  quiet.clock.forward(MINUTE_MS);
  await eventually("the registry was looked at", () => reads > readsBefore);
  quiet.clock.forward(MINUTE_MS);
  await eventually("and once more", () => reads > readsBefore + 1);
  expect([reads - readsBefore, quiet.events.follows - followsBefore]).toEqual([2, 0]);
  // One of them has an event at last.
  const { webhooks } = quiet.stores.registry;
  const [first] = await must(webhooks.all("quiet-7"));
  await must(webhooks.delete("quiet-7", first?.webhookId ?? ""));
  const receiver = quiet.receiver();
  await quiet.webhook("quiet-7", receiver.url);
  const ids = quiet.record("quiet-7", 1);
  await eventually("it is told", has(receiver, ids));
  await process.stop();
  await quiet.undo.run();
});

/** Copies of the tenant `quiet-0`, each with webhooks, in two statements. */
async function seedWebhooks(
  { database, clock }: SenderWorld,
  { tenants, ofEach }: { readonly tenants: number; readonly ofEach: number },
): Promise<void> {
  await database.db.execute(sql`
    INSERT INTO tenants (id, name, plan, channels, permissions, allow_custom, tokens, shard, version, created_at)
    SELECT 'quiet-' || n, name, plan, channels, permissions, allow_custom, tokens, n % 16, version, created_at
    FROM tenants, generate_series(1, ${tenants - 1}) n WHERE id = 'quiet-0'`);
  await database.db.execute(sql`
    INSERT INTO webhooks (id, tenant_id, url, batch_max, secret, epoch, position, failures, created_at)
    SELECT '01936f2e-7c1a-7b3e-9a55-' || lpad((row_number() OVER ())::text, 12, '0'), id, 'http://127.0.0.1:1/', 1,
      'v1.00000000.none', 1, ${firstEventIdAt(clock.nowMs())}, 0, now()
    FROM tenants, generate_series(1, ${ofEach}) n WHERE id LIKE 'quiet-%'`);
}
