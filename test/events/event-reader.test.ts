import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import type { EventFeed, EventQuery, EventReader, StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { ClickHouseEventFeed } from "../../src/events/clickhouse-event-feed.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { FakeEventStore } from "../http/support/fake-event-store.ts";
import { startEngine } from "../support/clickhouse-event-store.ts";

const jobIds = new JobIds(systemClock, systemRandom);
const JOB_ID = jobIds.next();
const ENDED = jobIds.next();
// Recent, because the event store removes older rows.
const FIRST = firstEventIdAt(Date.now() - 60_000);
const ALL: EventQuery = {
  tenantId: "acme",
  fromEventId: FIRST,
  toEventId: FIRST + 100,
  channel: null,
  type: null,
  limit: 100,
};

const row = (nth: number, changes: Partial<StoredEventRow> = {}): StoredEventRow => ({
  tenantId: "acme",
  jobId: JOB_ID,
  channel: "email",
  eventId: FIRST + nth,
  type: "sent",
  result: {},
  finished: null,
  ...changes,
});

const ROWS: readonly StoredEventRow[] = [
  row(0),
  row(1, { channel: "whatsapp" }),
  row(2, { channel: "wallet" }),
  row(3, { type: "clicked", result: { url: "https://example.com" } }),
  row(4, { tenantId: "globex" }),
  row(5, { jobId: ENDED, finished: { status: "success", attempts: 1, result: { id: "x" } } }),
];

/** The guarantees that endpoints rely on, for the event store on ClickHouse and for the one of the HTTP tests. */
interface Opened {
  readonly reader: EventReader;
  readonly feed: EventFeed;
  stop(): Promise<void>;
}

function conformance(name: string, open: () => Promise<Opened>): void {
  describe(name, () => {
    let opened: Opened;
    beforeAll(async () => {
      opened = await open();
    }, 300_000);
    afterAll(() => opened?.stop(), 60_000);

    const readIds = async (query: Partial<EventQuery>) => {
      const { events, hasMore } = await opened.reader.page({ ...ALL, ...query });
      return { nths: events.map(({ eventId }) => eventId - FIRST), hasMore };
    };

    test("a page has the tenant's events, newest first, without wallet's unless they are asked for", async () => {
      expect(await readIds({})).toEqual({ nths: [5, 3, 1, 0], hasMore: false });
      expect(await readIds({ channel: "wallet" })).toEqual({ nths: [2], hasMore: false });
      expect(await readIds({ channel: "whatsapp" })).toEqual({ nths: [1], hasMore: false });
      expect(await readIds({ type: "clicked" })).toEqual({ nths: [3], hasMore: false });
      expect(await readIds({ tenantId: "globex" })).toEqual({ nths: [4], hasMore: false });
      expect(await readIds({ tenantId: "initech" })).toEqual({ nths: [], hasMore: false });
    });

    test("a page begins at the first id, ends before the last, and says whether there is more", async () => {
      expect(await readIds({ fromEventId: FIRST + 1, toEventId: FIRST + 5 })).toEqual({ nths: [3, 1], hasMore: false });
      expect(await readIds({ limit: 2 })).toEqual({ nths: [5, 3], hasMore: true });
      expect(await readIds({ limit: 4 })).toEqual({ nths: [5, 3, 1, 0], hasMore: false });
    });

    test("an event comes back as it was written", async () => {
      const { events } = await opened.reader.page({ ...ALL, type: "clicked" });
      const {
        finished: _,
        tenantId: __,
        ...written
      } = row(3, {
        type: "clicked",
        result: { url: "https://example.com" },
      });
      expect(events).toMatchObject([written]);
    });

    test("whoever follows a tenant gets what is behind a place, oldest first, of the kinds that it asks for", async () => {
      const all = { tenantId: "acme", afterEventId: FIRST - 1, throughEventId: FIRST + 5, limit: 100 };
      const follow = async (query: Partial<Parameters<EventFeed["after"]>[0]>) => {
        const events = await opened.feed.after({ ...all, channels: null, types: null, ...query });
        return events.map(({ eventId }) => eventId - FIRST);
      };
      expect(await follow({})).toEqual([0, 1, 2, 3, 5]);
      expect(await follow({ limit: 2 })).toEqual([0, 1]);
      expect(await follow({ afterEventId: FIRST + 1, throughEventId: FIRST + 3 })).toEqual([2, 3]);
      expect(await follow({ channels: ["wallet", "whatsapp"] })).toEqual([1, 2]);
      expect(await follow({ types: ["clicked", "bounced"] })).toEqual([3]);
      expect(await follow({ throughEventId: FIRST - 1 })).toEqual([]);
      const marks = await opened.feed.marks([
        { tenantId: "acme", afterEventId: FIRST },
        { tenantId: "globex", afterEventId: FIRST + 4 },
        { tenantId: "initech", afterEventId: 0 },
      ]);
      expect(marks).toEqual(new Map([["acme", FIRST + 5]]));
      const many = Array.from({ length: 120 }, (_, at) => ({ tenantId: `nobody-${at}`, afterEventId: 0 }));
      expect(await opened.feed.marks([...many, { tenantId: "globex", afterEventId: 0 }])).toEqual(
        new Map([["globex", FIRST + 4]]),
      );
    });

    test("a job that has ended is found by its own tenant alone", async () => {
      const found = await opened.reader.job("acme", ENDED);
      expect(found).toMatchObject({ jobId: ENDED, tenantId: "acme", channel: "email", status: "success" });
      expect(found?.result).toEqual({ id: "x" });
      expect(await opened.reader.job("globex", ENDED)).toBeNull();
      expect(await opened.reader.job("acme", jobIds.next())).toBeNull();
    });
  });
}

conformance("the event store on ClickHouse", async () => {
  const engine = await startEngine();
  const { writer, reader, reading, target } = await engine.eventStore("read");
  await writer.write("one", ROWS);
  return { reader, feed: new ClickHouseEventFeed(reading, target), stop: () => engine.stop() };
});

conformance("the event store of the HTTP tests", async () => {
  const reader = new FakeEventStore();
  reader.events.push(...ROWS);
  for (const { tenantId, jobId, channel, finished } of ROWS) {
    if (finished !== null) reader.jobs.push({ ...finished, tenantId, jobId, channel, events: [] });
  }
  return { reader, feed: reader, stop: async () => undefined };
});
