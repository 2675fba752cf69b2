import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { firstEventIdAt } from "../../src/domain/event.ts";
import type { EventQuery, EventReader, StoredEventRow } from "../../src/domain/event-store.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { FakeEventStore } from "../http/support/fake-event-store.ts";
import { startChdb } from "../support/chdb-event-store.ts";

const jobIds = new JobIds(systemClock, systemRandom);
const JOB_ID = jobIds.next();
const ENDED = jobIds.next();
// Recent: what is older than the event store keeps is not there.
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

/** What endpoints may rely on, with the event store on ClickHouse and with the one of the HTTP tests. */
function conformance(name: string, open: () => Promise<{ reader: EventReader; stop(): Promise<void> }>): void {
  describe(name, () => {
    let opened: Awaited<ReturnType<typeof open>>;
    beforeAll(async () => {
      opened = await open();
    }, 60_000);
    afterAll(() => opened?.stop(), 60_000);

    const idsOf = async (query: Partial<EventQuery>) => {
      const { events, hasMore } = await opened.reader.page({ ...ALL, ...query });
      return { nths: events.map(({ eventId }) => eventId - FIRST), hasMore };
    };

    test("a page has the tenant's events, newest first, without wallet's unless they are asked for", async () => {
      expect(await idsOf({})).toEqual({ nths: [5, 3, 1, 0], hasMore: false });
      expect(await idsOf({ channel: "wallet" })).toEqual({ nths: [2], hasMore: false });
      expect(await idsOf({ channel: "whatsapp" })).toEqual({ nths: [1], hasMore: false });
      expect(await idsOf({ type: "clicked" })).toEqual({ nths: [3], hasMore: false });
      expect(await idsOf({ tenantId: "globex" })).toEqual({ nths: [4], hasMore: false });
      expect(await idsOf({ tenantId: "initech" })).toEqual({ nths: [], hasMore: false });
    });

    test("a page begins at the first id, ends before the last, and says whether there is more", async () => {
      expect(await idsOf({ fromEventId: FIRST + 1, toEventId: FIRST + 5 })).toEqual({ nths: [3, 1], hasMore: false });
      expect(await idsOf({ limit: 2 })).toEqual({ nths: [5, 3], hasMore: true });
      expect(await idsOf({ limit: 4 })).toEqual({ nths: [5, 3, 1, 0], hasMore: false });
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
  const engine = await startChdb();
  const { writer, reader } = await engine.eventStore("read", "process");
  await writer.write("one", ROWS);
  return { reader, stop: () => engine.stop() };
});

conformance("the event store of the HTTP tests", async () => {
  const reader = new FakeEventStore();
  reader.events.push(...ROWS);
  for (const { tenantId, jobId, channel, finished } of ROWS) {
    if (finished !== null) reader.jobs.push({ ...finished, tenantId, jobId, channel, events: [] });
  }
  return { reader, stop: async () => undefined };
});
