import { afterAll, beforeAll, expect, test } from "bun:test";
import { JobIds } from "../../src/core/ids.ts";
import { FENCED, type Lease, type Settlement } from "../../src/core/journal.ts";
import { RedisJournal } from "../../src/journal/redis-journal.ts";
import { Recorder } from "../../src/ledger/recorder.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { startChdb, type TestLedger } from "../support/chdb-ledger.ts";
import { eventually } from "../support/eventually.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";

const SHARDS = 2;
const JOBS = 300;
const PER_MINUTE = 1_000_000;
const tenants = [
  { tenantId: "acme", shard: 0 },
  { tenantId: "globex", shard: 1 },
] as const;

const telemetry = new QuietTelemetry();
const ports = { clock: systemClock, random: systemRandom, telemetry };
const jobIds = new JobIds(systemClock, systemRandom);
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
    ids.set(tenant.tenantId, await sendAll(tenant));
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
  expect(await redis.client.xlen("wb:{s00}:outbox")).toBe(0);
}, 60_000);

/** Accepts, pulls and settles jobs of one tenant, and answers their ids. */
async function sendAll(tenant: (typeof tenants)[number]): Promise<string[]> {
  const accepted = await Promise.all(
    Array.from({ length: JOBS }, () => {
      const job = {
        jobId: jobIds.next(),
        channel: "email",
        recipient: "a@b.test",
        payload: "{}",
        idempotency: null,
      } as const;
      return journal.accept(tenant, PER_MINUTE, job);
    }),
  );
  const lease = await journal.acquire(tenant.shard, "dispatcher", "test", 60_000);
  if (lease === null) throw new Error("the lease is taken");
  let after: string | null = null;
  for (let settled = 0; settled < JOBS; ) {
    const jobs = await pullSome(lease, tenant.tenantId, after);
    const settlements = jobs.map((job, n): Settlement => {
      const result = n % 3 === 0 ? { error: "refused; it's \\'" } : {};
      const [status, type] = n % 3 === 0 ? (["failed", "failed"] as const) : (["success", "sent"] as const);
      return { kind: "final", job, status, result, event: { type, result } };
    });
    expect(await journal.settle(lease, settlements)).toBe("settled");
    settled += jobs.length;
    after = jobs.at(-1)?.entryId ?? after;
  }
  return accepted.flatMap((answer) => (answer.kind === "accepted" ? [answer.jobId] : []));
}

async function pullSome(lease: Lease, tenantId: string, after: string | null) {
  const box = { tenantId, channel: "email" } as const;
  const pulled = await journal.pull(lease, { boxes: [{ box, after, entriesMax: 64 }], survey: false });
  if (pulled === FENCED) throw new Error("fenced");
  const jobs = pulled.boxes[0]?.jobs ?? [];
  expect(jobs.length).toBeGreaterThan(0);
  return jobs;
}
