import { afterAll, beforeAll, expect, test } from "bun:test";
import { RedisJournal } from "../../../src/engine/queue/redis-journal.ts";
import { Recorder } from "../../../src/engine/recorder/recorder.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { startChdb, type TestLedger } from "../../support/chdb-ledger.ts";
import { eventually } from "../../support/eventually.ts";
import { expectBalance } from "../../support/ledger-books.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { sendJobs } from "./journal-work.ts";

const SHARDS = 2;
const JOBS = 300;
const tenants = [
  { tenantId: "acme", shard: 0 },
  { tenantId: "globex", shard: 1 },
] as const;

const telemetry = new QuietTelemetry();
const ports = { clock: systemClock, random: systemRandom, telemetry };
let engine: Awaited<ReturnType<typeof startChdb>>;
let ledger: TestLedger;
let redis: RedisServer;
let journal: RedisJournal;

beforeAll(async () => {
  engine = await startChdb();
  ledger = await engine.ledger("copied", "process");
  redis = await startRedis();
  journal = new RedisJournal({ address: { kind: "socket", path: redis.path }, ...ports });
  await journal.start();
});
afterAll(async () => {
  await journal.stop();
  await redis.stop();
  await engine.stop();
});

test("what is settled in redis is in clickhouse once and as redis tells it, also after redis was killed", async () => {
  const recorder = new Recorder({ journal, ledger: ledger.writer, ...ports, owner: "r1", shards: SHARDS });
  recorder.start();
  const ids = new Map<string, string[]>();
  for (const [n, tenant] of tenants.entries()) {
    ids.set(tenant.tenantId, await sendJobs(journal, tenant, JOBS));
    if (n === 0) {
      await redis.kill();
      await redis.restart();
    }
  }
  await eventually(
    "everything is recorded",
    async () => {
      const rows = await ledger.reading.rows("SELECT count() FROM copied.jobs");
      return Number(rows[0]?.[0]) >= JOBS * tenants.length;
    },
    40_000,
  );
  await recorder.stop();
  for (const tenant of tenants) {
    const stored = await ledger.reading.rows(`SELECT job_id FROM copied.events WHERE tenant_id = '${tenant.tenantId}'`);
    expect(stored.map(([jobId]) => String(jobId)).toSorted()).toEqual((ids.get(tenant.tenantId) ?? []).toSorted());
    for (const jobId of ids.get(tenant.tenantId)?.slice(0, 3) ?? []) {
      const told = await journal.job(tenant, jobId);
      expect(told).not.toBeNull();
      expect(await ledger.reader.job(tenant.tenantId, jobId)).toEqual(told);
    }
  }
  await expectBalance(ledger.reading, "copied");
  expect(await ledger.reading.rows("SELECT DISTINCT template FROM copied.jobs")).toEqual([["welcome"]]);
  expect(await redis.client.xlen("wb:{s00}:outbox")).toBe(0);
}, 60_000);
