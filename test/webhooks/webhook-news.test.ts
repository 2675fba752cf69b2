import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { count, eq, sql } from "drizzle-orm";
import { UnavailableError } from "../../src/domain/errors.ts";
import { eventTimeMs } from "../../src/domain/jobs/event.ts";
import type { TenantNews } from "../../src/domain/tenants/tenant-news.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { OldRows } from "../../src/storage/old-rows.ts";
import { Database } from "../../src/storage/postgres/database.ts";
import { NewsDesk } from "../../src/webhooks/news-desk.ts";
import { shownAttempt } from "../../src/webhooks/schemas.ts";
import { webhookNews } from "../../src/webhooks/tables.ts";
import { eventually } from "../support/eventually.ts";
import { LONGEST_WAITS } from "../support/longest-waits.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { deadFeed } from "../tenants/machine.ts";
import { eventsIn, isSignedWith } from "./receiver.ts";
import { SenderWorld } from "./sender-world.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const AT_MS = Date.UTC(2026, 10, 22, 5);
const CHAT = ["message.received"] as const;

let world: SenderWorld;
beforeAll(async () => {
  world = await SenderWorld.open(["acme", "globex"]);
}, 300_000);
afterEach(async () => {
  await world.clear();
  await world.database.db.delete(webhookNews);
}, 90_000);
afterAll(() => world.undo.run(), 90_000);

/** Texts that a person wrote to the tenant. */
function written(tenantId: string, ...texts: readonly string[]): readonly TenantNews[] {
  return texts.map((text) => ({
    tenantId,
    id: `whatsapp:wamid.${text}`,
    type: "message.received",
    channel: "whatsapp",
    atMs: AT_MS,
    data: { message_id: `wamid.${text}`, from: "5491122334455", text },
  }));
}

const numbered = (from: number, through: number) =>
  Array.from({ length: through - from + 1 }, (_, at) => String(from + at));

async function stored(tenantId: string): Promise<number> {
  const rows = world.database.db.select({ of: count() }).from(webhookNews).where(eq(webhookNews.tenantId, tenantId));
  return (await rows)[0]?.of ?? 0;
}

test("what a person writes reaches the tenant's webhook once, signed, and nobody else", async () => {
  const [receiver, theirs] = [world.receiver(), world.receiver()];
  const { id, secret } = await world.webhook("acme", receiver.url, { eventTypes: CHAT });
  await world.webhook("globex", theirs.url);
  const process = world.start();
  const desk = world.desk();
  await desk.tell(written("acme", "hello"));
  // The provider repeats a call until it is acknowledged, to another process, too.
  await Promise.all([desk, world.desk()].map((one) => one.tell(written("acme", "hello", "again"))));
  await eventually("both are told", () => receiver.texts.length >= 2);
  expect(receiver.texts).toEqual(["hello", "again"]);
  const [first] = receiver.calls;
  expect(JSON.parse(first?.text ?? "")).toEqual({
    type: "message.received",
    timestamp: "2026-11-22T05:00:00.000Z",
    data: { channel: "whatsapp", message_id: "wamid.hello", from: "5491122334455", text: "hello" },
  });
  expect(first?.id).toStartWith(`${id}_news-`);
  expect(new Set(receiver.calls.map((call) => call.id)).size).toBe(2);
  expect(receiver.calls.every((call) => isSignedWith(secret, call))).toBe(true);
  // It is not subscribed to events.
  world.record("acme", 1);
  await desk.tell(written("acme", "last"));
  await eventually("the last is told", () => receiver.texts.length === 3);
  await process.stop();
  expect([receiver.calls.length, theirs.calls.length]).toEqual([3, 0]);
  const { items } = await must(world.stores.registry.webhooks.attempts("acme", id, { cursor: null, limit: 10 }));
  expect(items[0]).toMatchObject({ events: 1, firstEventId: null, lastEventId: null, isTest: false, error: null });
  expect(items.map((attempt) => shownAttempt(attempt).kind)).toEqual(["messages", "messages", "messages"]);
});

test("only what a webhook of the tenant asks for is stored", async () => {
  const desk = world.desk();
  const receiver = world.receiver();
  await desk.tell(written("acme", "nobody listens"));
  await world.webhook("acme", receiver.url, { eventTypes: ["bounced"] });
  await desk.tell(written("acme", "nobody listens to messages"));
  await world.webhook("acme", receiver.url, { channels: ["email"] });
  await desk.tell([...written("acme", "nobody listens to chat"), ...written("nobody", "is there")]);
  expect(await stored("acme")).toBe(0);
  const { id } = await world.webhook("acme", receiver.url);
  await desk.tell(written("acme", "all are told"));
  expect(await stored("acme")).toBe(1);
  world.start();
  await eventually("it is told", () => receiver.texts.length > 0);
  // One that subscribes later receives texts from then on.
  const [first] = await must(world.stores.registry.webhooks.all("acme"));
  await must(world.stores.registry.webhooks.change("acme", first?.webhookId ?? "", { eventTypes: CHAT }));
  await must(world.stores.registry.webhooks.delete("acme", id));
  await desk.tell(written("acme", "later"));
  await eventually("the later one is told", () => receiver.texts.length > 1);
  expect(receiver.texts).toEqual(["all are told", "later"]);
});

test("a webhook that wants no more news after some had failed is well again", async () => {
  const receiver = world.receiver();
  receiver.reply = () => new Response(null, { status: 503 });
  const { id } = await world.webhook("acme", receiver.url);
  world.start();
  await world.desk().tell(written("acme", "hello"));
  const progress = async () => (await world.shown("acme", id)).progress;
  await eventually("the call has failed", async () => (await progress()).failures > 0);
  await must(world.stores.registry.webhooks.change("acme", id, { eventTypes: ["bounced"] }));
  await eventually("it is well", async () => {
    world.clock.forward(MINUTE_MS);
    return (await progress()).failures === 0;
  });
  expect(await progress()).toMatchObject({ failingSinceMs: null, lastError: null, news: { retryThrough: null } });
});

test("messages and events each keep their order, and neither holds the other up", async () => {
  const receiver = world.receiver();
  await world.webhook("acme", receiver.url);
  const ids = world.record("acme", 1_000);
  const texts = numbered(1, 450);
  await world.desk().tell(written("acme", ...texts));
  // Turns are cut after a second of the machine's clock.
  receiver.reply = () => {
    world.clock.forward(20);
    return new Response();
  };
  world.start();
  await eventually("all of both", () => receiver.calls.length >= ids.length + texts.length, 60_000);
  const types = receiver.calls.flatMap(eventsIn).map(({ type }) => type);
  expect(receiver.texts).toEqual(texts);
  expect(receiver.eventIds.filter((id) => id !== undefined)).toEqual([...ids]);
  expect(types.lastIndexOf("message.received")).toBeLessThan(types.lastIndexOf("email.sent"));
  expect(types.indexOf("message.received")).toBeLessThan(400);
  expect(receiver.mostInFlight).toBe(1);
}, 300_000);

test("a call that failed is repeated as it was, before anything else, and one that was not noted under its id", async () => {
  const receiver = world.receiver();
  const { id } = await world.webhook("acme", receiver.url, { batchMax: 10 });
  receiver.reply = () => new Response(null, { status: 500 });
  const store = world.store();
  const dead = world.start({
    store: world.storeWith({
      // Its receiver's successes are lost with it.
      note: (notes) =>
        notes.some(({ progress }) => progress.failures === 0) ? new Promise(() => undefined) : store.note(notes),
    }),
  });
  await world.desk().tell(written("acme", "1", "2"));
  const failure = async () => {
    const { progress } = await world.shown("acme", id);
    return progress.failures > 0 ? progress : null;
  };
  const { nextAtMs } = await eventually("it failed", failure);
  expect((await failure())?.news.retryThrough).toBeGreaterThan(0);
  await world.desk().tell(written("acme", "3"));
  world.record("acme", 1);
  receiver.reply = () => new Response();
  world.clock.forward((nextAtMs ?? 0) - world.clock.nowMs() + 1);
  // It may go on to later events, which are not noted either.
  await eventually("it is repeated", () => receiver.calls.length >= 2);
  await dead.stop();
  const before = receiver.calls.length;
  expect((await failure())?.news.position).toBeLessThan((await failure())?.news.retryThrough ?? 0);
  world.start();
  const afterCrash = () => receiver.calls.slice(before);
  await eventually("the rest is told", () => afterCrash().length === 3);
  const [first, repeat] = receiver.calls.map((call) => call.id);
  expect([repeat, afterCrash()[0]?.id]).toEqual([first, first]);
  const texts = afterCrash().map((call) => eventsIn(call).map(({ data }) => data.text));
  expect(texts).toEqual(expect.arrayContaining([["1", "2"], ["3"], [undefined]]));
});

test("a message whose announcement was lost is told after a minute; a replay tells what came in a span", async () => {
  const receiver = world.receiver();
  const { id } = await world.webhook("acme", receiver.url, { eventTypes: CHAT, batchMax: 500 });
  const process = world.start();
  const quiet = new NewsDesk({
    store: world.news(),
    changes: deadFeed,
    clock: world.clock,
    telemetry: new QuietTelemetry(),
  });
  await quiet.tell(written("acme", "1", "2"));
  world.clock.forward(MINUTE_MS);
  await eventually("they are told", () => receiver.texts.length === 2);
  const stored = () => world.database.db.select().from(webhookNews).orderBy(webhookNews.id);
  // Otherwise a call in flight would run out of time.
  const last = (await stored()).at(-1)?.id;
  await eventually("that is noted", async () => (await world.shown("acme", id)).progress.news.position === last);
  const fromMs = world.clock.nowMs();
  world.clock.forward(MINUTE_MS);
  await world.desk().tell(written("acme", "3", "4"));
  await eventually("the others are told", () => receiver.texts.length === 4);
  const rows = await stored();
  expect(rows.map((row) => eventTimeMs(row.id) >= fromMs)).toEqual([false, false, true, true]);
  await process.stop();
  const { progress } = await world.shown("acme", id);
  expect(progress.news.position).toBe(rows[3]?.id ?? 0);
  world.start();
  const span = { afterEventId: rows[0]?.id ?? 0, throughEventId: rows[2]?.id ?? 0 };
  const replayed = await must(world.stores.registry.webhooks.replay("acme", id, span));
  expect(replayed.progress.news.replay).toEqual(span);
  await world.desk().tell(written("acme", "5"));
  await eventually("the span and the last one", () => receiver.texts.includes("5"));
  expect(receiver.texts.slice(4)).toEqual(["2", "3", "5"]);
});

test("a message of any characters is told as it was written", async () => {
  const receiver = world.receiver();
  await world.webhook("acme", receiver.url, { eventTypes: CHAT });
  world.start();
  const text = 'nul \u0000, half \ud83d, quote " and 😀';
  await world.desk().tell(written("acme", text).map((one) => ({ ...one, id: `whatsapp:\u0000${"x".repeat(600)}` })));
  await eventually("it is told", () => receiver.texts.length === 1);
  expect(receiver.texts).toEqual([text]);
});

describe("what is kept", () => {
  test("rows leave after a week, and the oldest ones of a tenant with too many", async () => {
    const news = world.news();
    const receiver = world.receiver();
    for (const tenantId of ["acme", "globex"]) await world.webhook(tenantId, receiver.url);
    await news.add("globex", written("globex", "old"));
    world.clock.forward(6 * DAY_MS);
    await news.add("globex", written("globex", "young"));
    world.clock.forward(DAY_MS + MINUTE_MS);
    await news.oldRows(() => Promise.resolve(world.clock.nowMs())).sweep();
    expect((await world.database.db.select().from(webhookNews)).map(({ data }) => JSON.parse(data).text)).toEqual([
      "young",
    ]);
    await world.database.db.execute(sql`
      INSERT INTO webhook_news (tenant_id, id, key, type, channel, at, data)
      SELECT 'acme', n, n::text, 'message.received', 'whatsapp', now(), '{}' FROM generate_series(1, 20400) n`);
    // They are counted only now and then, however they come.
    await news.add("acme", written("acme", ...numbered(1, 300)));
    expect(await stored("acme")).toBe(20_700);
    await news.add("acme", written("acme", ...numbered(301, 500)));
    expect(await stored("acme")).toBe(20_000);
    const left = sql<number>`min(${webhookNews.id})`.mapWith(Number);
    const rows = world.database.db.select({ left }).from(webhookNews).where(eq(webhookNews.tenantId, "acme"));
    expect((await rows)[0]?.left).toBe(901);
    expect(await stored("globex")).toBe(1);
  });

  test("a sweep ends after some pieces, and the next one comes after an hour", async () => {
    const clock = new VirtualClock();
    let removed = 0;
    const rows = new OldRows({
      database: new Database(world.database.db, systemClock),
      clock,
      random: LONGEST_WAITS,
      telemetry: world.telemetry,
      name: "rows",
      agreedMs: () => Promise.resolve(clock.nowMs()),
      piecesMax: 3,
      remove: async (_, limit) => {
        removed += 1;
        return limit;
      },
    });
    rows.start();
    await eventually("the first sweep is over", async () => {
      await clock.advance(1_000);
      return removed >= 3;
    });
    await clock.advance(59 * MINUTE_MS);
    expect(removed).toBe(3);
    await eventually("the next sweep is over", async () => {
      await clock.advance(MINUTE_MS);
      return removed >= 6;
    });
    await rows.stop();
    expect(removed).toBe(6);
  });

  test("ids rise even if the clock is put back and all rows have left", async () => {
    const receiver = world.receiver();
    const { id } = await world.webhook("acme", receiver.url, { eventTypes: CHAT });
    const process = world.start();
    await world.desk().tell(written("acme", "before"));
    await eventually("it is told", () => receiver.texts.length === 1);
    await process.stop();
    await world.database.db.delete(webhookNews);
    const { position } = (await world.shown("acme", id)).progress.news;
    world.clock.forward(-DAY_MS);
    await world.desk().tell(written("acme", "after"));
    const [row] = await world.database.db.select().from(webhookNews);
    expect(row?.id).toBe(position + 1);
    world.clock.forward(DAY_MS);
    world.start();
    await eventually("it is told, too", () => receiver.texts.length === 2);
  });
});

describe("a flood", () => {
  /** A desk whose store answers when the test says so. */
  function slowDesk() {
    const writes: { readonly tenantId: string; readonly rows: number; end(error?: Error): void }[] = [];
    const announced: string[] = [];
    const clock = new VirtualClock();
    const desk = new NewsDesk({
      store: {
        add(tenantId, news) {
          const { promise, resolve, reject } = Promise.withResolvers<number>();
          const end = (error?: Error) => (error === undefined ? resolve(news.length) : reject(error));
          writes.push({ tenantId, rows: news.length, end });
          return promise;
        },
        isAskedFor: async () => true,
      },
      changes: { announce: (tenantId) => void announced.push(tenantId ?? "") },
      clock,
      telemetry: new QuietTelemetry(),
    });
    return { desk, writes, announced, clock };
  }

  test("has one transaction under way, shared by what waits, and leaves the others' turns alone", async () => {
    const { desk, writes, announced, clock } = slowDesk();
    const calls = Array.from({ length: 50 }, (_, at) => desk.tell(written("acme", ...numbered(at * 10, at * 10 + 9))));
    const other = desk.tell(written("globex", "1"));
    expect(writes.map(({ tenantId, rows }) => [tenantId, rows])).toEqual([
      ["acme", 10],
      ["globex", 1],
    ]);
    writes[1]?.end();
    await other;
    for (let at = 0; at < 5; at += 1) {
      await eventually("the next one begins", () => writes.length > at);
      writes[at]?.end();
    }
    await Promise.all(calls);
    expect(writes.filter(({ tenantId }) => tenantId === "acme").map(({ rows }) => rows)).toEqual([10, 200, 200, 90]);
    expect(announced).toEqual([]);
    await clock.advance(1_000);
    expect(announced.toSorted()).toEqual(["acme", "globex"]);
  });

  test("beyond a bound is refused, so that the provider repeats it; a failed write refuses all that it had", async () => {
    const { desk, writes } = slowDesk();
    // One call is accepted whatever its length.
    const long = desk.tell(written("acme", ...numbered(1, 3_000)));
    await expect(desk.tell(written("acme", "one more"))).rejects.toBeInstanceOf(UnavailableError);
    const others = desk.tell([...written("acme", "and another"), ...written("globex", "1")]);
    await eventually("the other tenant's is written", () => writes.some(({ tenantId }) => tenantId === "globex"));
    writes.find(({ tenantId }) => tenantId === "globex")?.end();
    await expect(others).rejects.toBeInstanceOf(UnavailableError);
    writes[0]?.end(new UnavailableError("away"));
    await expect(long).rejects.toBeInstanceOf(UnavailableError);
    const anew = desk.tell(written("acme", "one more"));
    writes.at(-1)?.end();
    await anew;
  });
});
