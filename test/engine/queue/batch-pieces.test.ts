import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { idInBatch, isJobId, JobIds } from "../../../src/domain/ids.ts";
import type { BatchItem, BatchKey, BatchQueue, PieceResult } from "../../../src/domain/jobs/batch.ts";
import type { FrontQueue, NewJob } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { FakeQueue } from "../../http/support/fake-queue.ts";
import { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { MemoryRedis } from "../../support/memory-redis/memory-redis.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { startRedis } from "../../support/redis.ts";

interface Opened {
  readonly queue: FrontQueue & BatchQueue;
  stop(): Promise<void>;
}

const jobIds = new JobIds(systemClock, systemRandom);
const LIMIT = 1_000;
let tenants = 0;

function newTenant(): TenantRef {
  tenants += 1;
  return { tenantId: `tenant-${tenants}`, shard: 3 };
}

function buildKey(changes: Partial<BatchKey> = {}): BatchKey {
  return { key: "order 1", fingerprint: "body", baseId: jobIds.nextBatch(), run: jobIds.next(), ...changes };
}

function items(
  { baseId }: Pick<BatchKey, "baseId">,
  indexes: readonly number[],
  changes: Partial<NewJob> = {},
): BatchItem[] {
  return indexes.map((index) => ({
    index,
    job: {
      jobId: idInBatch(baseId, index),
      channel: "email",
      recipient: "ann@example.com",
      payload: '{"to":"ann@example.com"}',
      idempotency: null,
      ...changes,
    },
  }));
}

function kinds(result: PieceResult): readonly string[] {
  return result.kind === "answered" ? result.answers.map(({ kind }) => kind) : [result.kind];
}

/** The guarantees that batches rely on, for the queue in Redis, the simulator's and the one of the HTTP tests. */
function conformance(name: string, open: () => Promise<Opened>): void {
  describe(name, () => {
    let opened: Opened;
    let queue: Opened["queue"];
    beforeAll(async () => {
      opened = await open();
      ({ queue } = opened);
    }, 300_000);
    afterAll(() => opened?.stop(), 90_000);

    const accept = (tenant: TenantRef, key: BatchKey | null, all: readonly BatchItem[], isFirstCounted = false) =>
      queue.acceptPiece(tenant, LIMIT, { key, items: all, isFirstCounted });

    test("each message counts as a request, whether it is queued or refused; the first may have been counted before", async () => {
      const [tenant, key] = [newTenant(), buildKey()];
      const all = [...items(key, [0, 1]), { index: 2, job: null }];
      const result = await accept(tenant, null, all, true);
      expect(kinds(result)).toEqual(["accepted", "accepted", "admitted"]);
      expect((await queue.admit(tenant, LIMIT)).rate.remaining).toBe(LIMIT - 3);
    });

    test("messages beyond the rate are refused, those before it are queued", async () => {
      const [tenant, { baseId }] = [newTenant(), buildKey()];
      const result = await queue.acceptPiece(tenant, 2, {
        key: null,
        items: items({ baseId }, [0, 1, 2]),
        isFirstCounted: false,
      });
      expect(kinds(result)).toEqual(["accepted", "accepted", "limited"]);
      expect(await queue.job(tenant, idInBatch(baseId, 2))).toBeNull();
      expect(await queue.job(tenant, idInBatch(baseId, 1))).toMatchObject({ status: "pending" });
    });

    test("messages beyond the tenant's share are refused", async () => {
      const [tenant, { baseId }] = [newTenant(), buildKey()];
      const all = items({ baseId }, [0, 1, 2], { quota: { jobs: 2, bytes: 10_000 } });
      expect(kinds(await accept(tenant, null, all))).toEqual(["accepted", "accepted", "queue_full"]);
    });

    test("under a key, what was queued is neither queued nor counted again", async () => {
      const [tenant, key] = [newTenant(), buildKey()];
      expect(kinds(await accept(tenant, key, items(key, [0, 1, 3])))).toEqual(["accepted", "accepted", "accepted"]);
      const again = { ...key, run: jobIds.next() };
      const repeated = await accept(tenant, again, items(key, [0, 1, 2, 3, 4]));
      expect(kinds(repeated)).toEqual(new Array(5).fill("accepted"));
      const earlier = repeated.kind === "answered" ? repeated.answers.map((answer) => "isEarlier" in answer) : [];
      expect(earlier).toEqual([true, true, false, true, false]);
      expect((await queue.admit(tenant, LIMIT)).rate.remaining).toBe(LIMIT - 5 - 1);
      const known = await queue.batchUnder(tenant, key);
      const queued = known?.queued.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
      expect(queued?.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
      expect(known).toMatchObject({ isSame: true, baseId: key.baseId, refused: null });
    });

    test("a key that another call of the same request has taken names its base, and nothing is queued", async () => {
      const [tenant, first] = [newTenant(), buildKey()];
      await accept(tenant, first, items(first, [0]));
      const second = buildKey();
      expect(await accept(tenant, second, items(second, [0, 1]))).toEqual({ kind: "taken", baseId: first.baseId });
      expect(await queue.job(tenant, idInBatch(second.baseId, 0))).toBeNull();
      expect(await queue.job(tenant, idInBatch(second.baseId, 1))).toBeNull();
    });

    test("the key of another request is a conflict, between batches and with single requests", async () => {
      const [tenant, key] = [newTenant(), buildKey()];
      await accept(tenant, key, items(key, [0]));
      const other = buildKey({ fingerprint: "another-body" });
      expect(kinds(await accept(tenant, other, items(other, [0])))).toEqual(["conflict"]);
      expect((await queue.batchUnder(tenant, other))?.isSame).toBe(false);
      const single = { key: key.key, fingerprint: "single-body" };
      const job: NewJob = {
        jobId: jobIds.next(),
        channel: "email",
        recipient: "b@example.com",
        payload: "{}",
        idempotency: single,
      };
      expect((await queue.accept(tenant, LIMIT, job)).kind).toBe("conflict");
      const taken = { key: "single", fingerprint: "single-body" };
      expect((await queue.accept(tenant, LIMIT, { ...job, idempotency: taken })).kind).toBe("accepted");
      const batch = buildKey({ key: "single" });
      expect(kinds(await accept(tenant, batch, items(batch, [0])))).toEqual(["conflict"]);
    });

    test("a key is not claimed by messages that are all refused", async () => {
      const [tenant, key] = [newTenant(), buildKey()];
      expect(kinds(await accept(tenant, key, [{ index: 0, job: null }]))).toEqual(["admitted"]);
      expect(await queue.batchUnder(tenant, key)).toBeNull();
    });

    test("the refusals of a whole answer are kept with the key", async () => {
      const [tenant, key] = [newTenant(), buildKey()];
      await accept(tenant, key, items(key, [0]));
      await queue.endBatch(tenant, key.baseId, '[[1,"no"]]');
      expect(await queue.batchUnder(tenant, key)).toMatchObject({ queued: [[0, 0]], refused: '[[1,"no"]]' });
    });
  });
}

conformance("in Redis", async () => {
  const redis = await startRedis();
  const queue = new RedisQueue({
    channels: CHANNELS,
    address: { kind: "socket", path: redis.path },
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  await queue.start();
  return {
    queue,
    async stop() {
      await queue.stop();
      await redis.stop();
    },
  };
});
conformance("in the simulator", async () => ({
  queue: new MemoryQueue(new MemoryRedis(() => systemClock.nowMs()), systemClock, systemRandom),
  stop: async () => {},
}));
conformance("of the HTTP tests", async () => ({ queue: new FakeQueue(), stop: async () => {} }));

test("ids of a batch are job ids that rise with the index and differ", () => {
  const baseId = jobIds.nextBatch();
  const ids = Array.from({ length: 1_000 }, (_, index) => idInBatch(baseId, index));
  expect([ids.every(isJobId), new Set(ids).size, ids[0]]).toEqual([true, 1_000, baseId]);
  expect(ids.toSorted()).toEqual(ids);
});
