import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHANNELS } from "../../../src/app/channels.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { ClickHouse } from "../../../src/events/clickhouse.ts";
import { migrateEventStore } from "../../../src/events/schema/migrate-event-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { expectBalance } from "../../support/event-store-checker.ts";
import { eventually } from "../../support/eventually.ts";
import { openClickHouse } from "../../support/private-clickhouse.ts";
import { recordProof } from "../../support/proof.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { DYING_DATABASE, DYING_MOMENTS, type DyingMoment } from "./dying-moments.ts";
import { sendJobs } from "./queue-work.ts";

const TENANTS = [
  { tenantId: "acme", shard: 0 },
  { tenantId: "globex", shard: 1 },
] as const;
/** The jobs of a tenant before each death. */
const JOBS = 120;

let folder: string;
let redis: RedisServer;
let queue: RedisQueue;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-dying-"));
  redis = await startRedis();
  const ports = { clock: systemClock, random: systemRandom, telemetry: new QuietTelemetry() };
  queue = new RedisQueue({ channels: CHANNELS, address: { kind: "socket", path: redis.path }, ...ports });
  await queue.start();
  await inEngine((clickhouse) => migrateEventStore(clickhouse, { database: DYING_DATABASE, cluster: null }));
}, 300_000);

afterAll(async () => {
  await queue.stop();
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
}, 90_000);

/** The folder is open in one process at a time. */
async function inEngine<T>(work: (clickhouse: ClickHouse) => Promise<T>): Promise<T> {
  const chdb = await openClickHouse(folder);
  try {
    return await work(new ClickHouse({ client: chdb.writer, clock: systemClock, timeoutMs: 20_000 }));
  } finally {
    await chdb.close();
  }
}

function startRecorder(moment: DyingMoment) {
  const program = join(import.meta.dir, "dying-recorder.ts");
  return Bun.spawn([process.execPath, program, redis.path, folder, moment], { stdout: "ignore", stderr: "inherit" });
}

test("rows and sums are exact after a recorder was killed at every moment of a batch", async () => {
  const ids: string[] = [];
  for (const moment of [...DYING_MOMENTS, ...DYING_MOMENTS.slice(1)]) {
    for (const tenant of TENANTS) ids.push(...(await sendJobs(queue, tenant, JOBS)));
    const recorder = startRecorder(moment);
    await recorder.exited;
    expect([moment, recorder.signalCode]).toEqual([moment, "SIGKILL"]);
  }
  const recorder = startRecorder("never");
  const isEmpty = async (shard: string) =>
    (await redis.client.xlen(`wb:{${shard}}:outbox`)) === 0 && (await redis.client.exists(`wb:{${shard}}:mark`)) === 0;
  await eventually("all is recorded", async () => (await isEmpty("s00")) && (await isEmpty("s01")), 30_000);
  recorder.kill("SIGKILL");
  await recorder.exited;

  await inEngine(async (clickhouse) => {
    for (const table of ["events", "jobs"]) {
      const stored = await clickhouse.rows(`SELECT job_id FROM ${DYING_DATABASE}.${table}`);
      expect(stored.map(([jobId]) => String(jobId)).toSorted()).toEqual(ids.toSorted());
    }
    await expectBalance(clickhouse, DYING_DATABASE);
    recordProof({
      fault: "kill -9 of the recorder at every moment of a batch",
      accepted: ids.length,
      lost: 0,
      note: "every event is stored once, and the sums agree",
    });
  });
}, 300_000);
