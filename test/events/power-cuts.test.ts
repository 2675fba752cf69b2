import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JobIds } from "../../src/domain/ids.ts";
import { EVENT_EPOCH_MS, EVENT_IDS_PER_MS } from "../../src/domain/jobs/event.ts";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { serverUpMs, settleForPowerCuts } from "../../src/events/schema/power-cuts.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { SkippingClock } from "../tenants/machine.ts";

const TARGET = { database: "waybill", cluster: null } as const;
/** More than the engine allows a table by default. */
const PARTS = 130;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-power-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function opened<T>(work: (clickhouse: ClickHouse) => Promise<T>): Promise<T> {
  const chdb = await openClickHouse(folder);
  try {
    return await work(new ClickHouse({ client: chdb.writer, clock: systemClock, timeoutMs: 60_000 }));
  } finally {
    await chdb.close();
  }
}

const counted = (clickhouse: ClickHouse) =>
  clickhouse.rows("SELECT (SELECT count() FROM waybill.events), (SELECT sum(events) FROM waybill.events_hourly)");

test("an event store that a power cut left a hundred empty parts of sums opens, and takes events", async () => {
  const places = await opened(async (clickhouse) => {
    await migrateEventStore(clickhouse, TARGET);
    await settleForPowerCuts(clickhouse, TARGET);
    await clickhouse.command("SYSTEM STOP MERGES waybill.events_hourly");
    const insert = (event: number) =>
      clickhouse.command(
        `INSERT INTO waybill.events (tenant_id, event_id, job_id, channel, event_type) VALUES ('acme', ${event * 4_096_000}, generateUUIDv4(), 'email', 'sent')`,
      );
    for (let part = 0; part < PARTS; part += 1) await insert(250_000_000 + part);
    expect(await counted(clickhouse)).toEqual([[PARTS, PARTS]]);
    return clickhouse.rows("SELECT path FROM system.parts WHERE table = 'events_hourly' AND active");
  });
  expect(places).toHaveLength(PARTS);
  // A file system keeps only the name of a file that was not synced.
  for (const [place] of places) {
    const part = String(place);
    for (const file of await readdir(part)) await truncate(join(part, file), 0);
  }
  await opened(async (clickhouse) => {
    expect(await counted(clickhouse)).toEqual([[PARTS, 0]]);
    await clickhouse.command(
      "INSERT INTO waybill.events (tenant_id, event_id, job_id, channel, event_type) VALUES ('acme', 1126400000000000, generateUUIDv4(), 'email', 'sent')",
    );
    expect(await counted(clickhouse)).toEqual([[PARTS + 1, 1]]);
  });
}, 300_000);

test("what the tables have already is not set again", async () => {
  await opened(async (clickhouse) => {
    const commands: string[] = [];
    const watched = Object.assign(Object.create(clickhouse), {
      command: (sql: string) => Promise.resolve(void commands.push(sql)),
    });
    await settleForPowerCuts(watched, TARGET);
    expect(commands).toEqual([]);
  });
}, 300_000);

test("a server says for how long it has lost nothing, a cluster does not have to", async () => {
  await opened(async (clickhouse) => {
    const upMs = await serverUpMs(clickhouse, TARGET);
    expect(upMs >= 0 && upMs < 3_600_000).toBe(true);
    expect(await serverUpMs(clickhouse, { ...TARGET, cluster: "c" })).toBe(Number.POSITIVE_INFINITY);
  });
}, 300_000);

test("a batch whose tokens and sums a power cut took is completed, and no event is there twice", async () => {
  const ids = new JobIds(systemClock, systemRandom);
  const first = (Date.now() - EVENT_EPOCH_MS) * EVENT_IDS_PER_MS;
  const finished = { status: "success", attempts: 1, result: {} } as const;
  const rows = Array.from({ length: 5 }, (_, i) => {
    const one = { tenantId: "cut", jobId: ids.next(), channel: "email", eventId: first + i, type: "sent" } as const;
    return { ...one, result: {}, finished };
  });
  const clock = new SkippingClock();
  const createWriter = (clickhouse: ClickHouse, upMs: () => Promise<number>) =>
    new ClickHouseEventWriter(clickhouse, TARGET, clock, { upMs });
  const sums = "SELECT sum(events) FROM waybill.events_hourly WHERE tenant_id = 'cut'";
  const events = "SELECT count() FROM waybill.events WHERE tenant_id = 'cut'";
  const paths = await opened(async (clickhouse) => {
    await createWriter(clickhouse, async () => 60_000).write("cut", rows);
    expect([await clickhouse.rows(events), await clickhouse.rows(sums)]).toEqual([[[5]], [[5]]]);
    await clickhouse.command(
      "ALTER TABLE waybill.events_hourly DELETE WHERE tenant_id = 'cut' SETTINGS mutations_sync = 2",
    );
    return clickhouse.rows(
      "SELECT data_paths[1] FROM system.tables WHERE database = 'waybill' AND engine LIKE '%MergeTree'",
    );
  });
  for (const [path] of paths) await rm(join(String(path), "deduplication_logs"), { recursive: true, force: true });
  await opened(async (clickhouse) => {
    const writer = createWriter(clickhouse, async () => 0);
    await expect(writer.write("cut", rows, "again")).rejects.toThrow("stored in part");
    expect(await clickhouse.rows(events)).toEqual([[5]]);
    clock.skip(30_000);
    expect(await writer.write("cut", rows, "again")).toEqual({ wereThere: true, setAside: 0 });
    expect([await clickhouse.rows(events), await clickhouse.rows(sums)]).toEqual([[[5]], [[5]]]);
  });
}, 300_000);
