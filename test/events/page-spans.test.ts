import { afterAll, beforeAll, expect, test } from "bun:test";
import type { EventQuery } from "../../src/domain/jobs/event-store.ts";
import { eventIdAt, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { SeededRandom } from "../support/seeded-random.ts";

const DAY_MS = 86_400_000;

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;
const ids: number[] = [];

/** Nine days with bursts, gaps of days, and single events in between. */
beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("spans");
  const random = new SeededRandom(7);
  for (const [daysAgo, count] of [
    [9, 40],
    [8, 1],
    [5, 130],
    [4.9, 2],
    [1.2, 90],
    [0.4, 12],
    [0, 7],
  ] as const) {
    for (let n = 0; n < count; n += 1) ids.push(eventIdAt(Math.round(-daysAgo * DAY_MS + random.next() * 600_000)));
  }
  const rows = [...new Set(ids)].map((eventId) => storedEventRow(eventId, { tenantId: "acme" }));
  ids.splice(0, ids.length, ...rows.map(({ eventId }) => eventId).sort((a, b) => b - a));
  await eventStore.writer.write("s1:spans", rows);
}, 90_000);
afterAll(async () => {
  await engine.stop();
});

test("following the pages shows each event once, in order, however far apart the events are", async () => {
  const random = new SeededRandom(11);
  for (let round = 0; round < 25; round += 1) {
    const limit = 1 + Math.floor(random.next() * 60);
    const fromEventId = eventIdAt(Math.round(-10 * random.next() * DAY_MS));
    const end = eventIdAt(Math.round((2 - 9 * random.next()) * DAY_MS));
    const expected = ids.filter((id) => id >= fromEventId && id < end);
    const seen: number[] = [];
    for (let toEventId = end; ; ) {
      const query: EventQuery = { tenantId: "acme", fromEventId, toEventId, channel: null, type: null, limit };
      const { events, hasMore } = await eventStore.reader.page(query);
      seen.push(...events.map(({ eventId }) => eventId));
      expect(hasMore).toBe(seen.length < expected.length);
      if (!hasMore) break;
      toEventId = seen.at(-1) ?? 0;
    }
    expect(seen).toEqual(expected);
  }
}, 300_000);

test("pages are full and say whether there is more, also where events are stored twice", async () => {
  const rows = Array.from({ length: 9 }, (_, n) => storedEventRow(eventIdAt(-n * 3_600_000), { tenantId: "twice" }));
  await eventStore.writer.write("s1:twice", rows);
  // Under other tokens they are other rows.
  for (const token of ["s1:thrice", "s1:copies"]) await eventStore.writer.write(token, rows.slice(0, 3));
  await eventStore.writer.write("s1:last", rows.slice(-1));
  for (let limit = 1; limit <= 10; limit += 1) {
    const pages: number[][] = [];
    for (let toEventId = eventIdAt(1), isMore = true; isMore; ) {
      const query = { tenantId: "twice", fromEventId: 0, toEventId, channel: null, type: null, limit } as const;
      const { events, hasMore } = await eventStore.reader.page(query);
      pages.push(events.map(({ eventId }) => eventId));
      toEventId = pages.at(-1)?.at(-1) ?? 0;
      isMore = hasMore;
    }
    expect(pages.flat()).toEqual(rows.map(({ eventId }) => eventId));
    expect(pages.map((page) => page.length).slice(0, -1)).toEqual(Array(pages.length - 1).fill(limit));
    expect(pages).toHaveLength(Math.ceil(rows.length / limit));
  }
});
