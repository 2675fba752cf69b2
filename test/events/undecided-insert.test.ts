import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError } from "../../src/domain/errors.ts";
import { ClickHouse, connectClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { eventIdAt, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { SkippingClock } from "../tenants/machine.ts";

const UNDECIDED = "Code: 319. DB::Exception: Unknown quorum status. (UNKNOWN_STATUS_OF_INSERT) (version 26.7.2.1)\n";

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("undecided");
}, 90_000);
afterAll(() => engine.stop(), 90_000);

const stored = async (tenantId: string) => {
  const sql = `SELECT count(), (SELECT sum(events) FROM undecided.events_hourly WHERE tenant_id = '${tenantId}') FROM undecided.events WHERE tenant_id = '${tenantId}'`;
  return (await eventStore.reading.rows(sql))[0]?.map(Number);
};

// ClickHouse#81260: repeated under its token at once, such an insert was stored twice.
test("an insert that replicas left undecided is repeated only once it cannot show any more", async () => {
  const { url, user, password } = engine.server.address;
  let late: (() => Promise<unknown>) | null = null;
  let inserts = 0;
  /** Answers the first insert like a replica that waited for others in vain, and stores it later. */
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { search, searchParams } = new URL(request.url);
      const body = await request.text();
      const headers = { "x-clickhouse-user": user, "x-clickhouse-key": password, "accept-encoding": "identity" };
      const pass = () => fetch(`${url}/${search}`, { method: "POST", body, headers });
      if (!`${searchParams.get("query") ?? ""}${body}`.startsWith("INSERT")) return pass();
      inserts += 1;
      if (late !== null) return pass();
      late = pass;
      return new Response(UNDECIDED, { status: 500, headers: { "x-clickhouse-exception-code": "319" } });
    },
  });
  const clock = new SkippingClock();
  const clients = connectClickHouse({ url: proxy.url.origin, user, password });
  const writing = new ClickHouse({ client: clients.writer, clock, timeoutMs: 20_000 });
  const writer = new ClickHouseEventWriter(writing, eventStore.target, clock);
  const rows = [1, 2, 3].map((n) => storedEventRow(eventIdAt(n), { tenantId: "late" }));

  await expect(writer.write("undecided-1", rows)).rejects.toBeInstanceOf(TransportError);
  await expect(writer.write("undecided-1", rows, "again")).rejects.toThrow("still be under way");
  expect([inserts, await stored("late")]).toEqual([1, [0, 0]]);
  // The insert shows after all, so there is no work left.
  await (late as (() => Promise<unknown>) | null)?.();
  clock.skip(30_000);
  await writer.write("undecided-1", rows, "again");
  expect(await stored("late")).toEqual([3, 3]);

  late = null;
  const others = [4, 5].map((n) => storedEventRow(eventIdAt(n), { tenantId: "lost" }));
  await expect(writer.write("undecided-2", others)).rejects.toBeInstanceOf(TransportError);
  await expect(writer.write("undecided-2", others, "again")).rejects.toThrow("still be under way");
  clock.skip(30_000);
  await writer.write("undecided-2", others, "again");
  expect(await stored("lost")).toEqual([2, 2]);
  await clients.close();
  await proxy.stop(true);
}, 90_000);
