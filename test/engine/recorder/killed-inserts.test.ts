import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ClickHouse } from "../../../src/events/clickhouse.ts";
import { migrateEventStore } from "../../../src/events/schema/migrate-event-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { expectStoredOnce } from "../../support/event-store-checker.ts";
import { openClickHouse } from "../../support/private-clickhouse.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { batchAt, ForgetfulEventStore, newToken } from "./forgetful-event-store.ts";

const { KILLED_INSERTS: rounds } = Bun.env;
const ROUNDS = Number(rounds ?? 6);

test("every row is stored once after an engine was killed amid inserts whose tokens were forgotten before they were repeated", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-killed-"));
  const random = new SeededRandom(5);
  const inEngine = async (work: (eventStore: ForgetfulEventStore) => Promise<void>) => {
    const chdb = await openClickHouse(join(folder, "clickhouse"));
    try {
      const clickhouse = new ClickHouse({ client: chdb.writer, clock: systemClock, timeoutMs: 20_000 });
      await work(new ForgetfulEventStore(clickhouse, "killed"));
    } finally {
      await chdb.close();
    }
  };
  await inEngine(async (eventStore) => {
    await migrateEventStore(eventStore.clickhouse, { database: "killed", cluster: null });
    await eventStore.forgetSoon();
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    const [token, rows] = [newToken(), batchAt(1_000 * round, 400)];
    const batch = join(folder, "batch.json");
    await Bun.write(batch, JSON.stringify({ token, rows }));
    const program = join(import.meta.dir, "writing-process.ts");
    // Right after the events, or somewhere in the tables derived from them.
    const table = ["events", "events_by_type", "events_hourly"][round % 3] ?? "events";
    const lateMs = String(Math.floor(random.next() * 3));
    const command = [process.execPath, program, join(folder, "clickhouse"), "killed", batch, table, lateMs];
    const child = Bun.spawn(command, { stdout: "ignore", stderr: "inherit" });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    await inEngine(async (eventStore) => {
      await eventStore.writeOthers(1_000 * round + 500);
      eventStore.letTimePass();
      await eventStore.complete(token, rows);
      await expectStoredOnce(eventStore.clickhouse, "killed", rows);
    });
  }
  await rm(folder, { recursive: true, force: true });
}, 300_000);
