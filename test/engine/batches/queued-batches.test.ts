import { expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { Batch, BatchPiece, BatchQueue, BatchResult, PieceResult } from "../../../src/domain/jobs/batch.ts";
import { QueuedBatches } from "../../../src/engine/batches/queued-batches.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { PieceTurns } from "../../../src/engine/queue/piece-turns.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { MemoryRedis } from "../../support/memory-redis/memory-redis.ts";

const jobIds = new JobIds(systemClock, systemRandom);

function buildBatch(tenantId: string, changes: Partial<Batch> = {}): Batch {
  const size = changes.size ?? 4;
  return {
    tenant: { tenantId, shard: 0 },
    requestsPerMinute: 1_000,
    isCounted: false,
    idempotency: null,
    size,
    make: (from, ids) => {
      const next = Math.min(from + 2, size);
      const indexes = Array.from({ length: next - from }, (_, i) => from + i).filter((index) => !ids.isQueued(index));
      const messages = indexes.map((index) => {
        const job = {
          jobId: ids.jobId(index),
          channel: "email",
          recipient: `u${index}@example.com`,
          payload: "{}",
          idempotency: null,
        };
        return { index, job };
      });
      return { messages, next };
    },
    describeRefusal: (noRoom) => noRoom,
    onQueued: () => undefined,
    ...changes,
  };
}

function memoryQueue(): MemoryQueue {
  return new MemoryQueue(new MemoryRedis(() => systemClock.nowMs()), systemClock, systemRandom);
}

/** A queue whose pieces wait until the test lets them in. */
class GatedQueue implements BatchQueue {
  readonly asked: string[] = [];
  private readonly gates: (() => void)[] = [];

  constructor(private readonly queue = memoryQueue()) {}

  async acceptPiece(tenant: Batch["tenant"], requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult> {
    this.asked.push(tenant.tenantId);
    await new Promise<void>((resolve) => this.gates.push(resolve));
    return this.queue.acceptPiece(tenant, requestsPerMinute, piece);
  }
  batchUnder: BatchQueue["batchUnder"] = (tenant, idempotency) => this.queue.batchUnder(tenant, idempotency);
  endBatch: BatchQueue["endBatch"] = (tenant, baseId, refused) => this.queue.endBatch(tenant, baseId, refused);

  /** Releases pieces until all awaited calls have ended. */
  async open<T>(all: readonly Promise<T>[]): Promise<readonly T[]> {
    let isOver = false;
    const results = Promise.all(all).finally(() => (isOver = true));
    while (!isOver) {
      this.gates.shift()?.();
      await Bun.sleep(0);
    }
    return results;
  }
}

test("a tenant's batches wait for each other, and no other tenant waits behind them", async () => {
  const queue = new GatedQueue();
  const batches = new QueuedBatches({ queue, jobIds });
  const many = Array.from({ length: 80 }, () => batches.accept(buildBatch("acme")));
  const other = batches.accept(buildBatch("bolt"));
  await Bun.sleep(0);
  expect(queue.asked).toEqual(["acme", "acme", "acme", "bolt"]);
  const kinds = (await queue.open<BatchResult>([...many, other])).map(({ kind }) => kind);
  expect([kinds.filter((kind) => kind === "answered").length, kinds.filter((kind) => kind === "busy").length]).toEqual([
    68, 13,
  ]);
});

test("of two calls of one batch that overlap, each message is counted as queued by one", async () => {
  const queue = new GatedQueue();
  let counted = 0;
  const onQueued = (jobs: number) => (counted += jobs);
  const batch = buildBatch("acme", { size: 6, idempotency: { key: "one", fingerprint: "body" }, onQueued });
  const [here, there] = [new QueuedBatches({ queue, jobIds }), new QueuedBatches({ queue, jobIds })];
  const results = await queue.open([here.accept(batch), there.accept(batch)]);
  expect(counted).toBe(6);
  // Three pieces of the one, the other's first under a key of its own, and at least one that the first had sent as well.
  expect(queue.asked.length).toBeGreaterThan(4);
  const [one, other] = results.map((result) => (result.kind === "answered" ? result.outcomes : []));
  expect(other).toEqual(one ?? []);
});

test("what a call has queued is counted although it gets no answer, and its repeat counts the rest", async () => {
  const queue = memoryQueue();
  let pieces = 0;
  const breaking: BatchQueue = {
    acceptPiece: (...call) =>
      ++pieces < 3 ? queue.acceptPiece(...call) : Promise.reject(new TransportError("no answer")),
    batchUnder: (...call) => queue.batchUnder(...call),
    endBatch: (...call) => queue.endBatch(...call),
  };
  const counted: number[] = [];
  const onQueued = (jobs: number) => void counted.push(jobs);
  const batch = buildBatch("acme", { size: 6, idempotency: { key: "one", fingerprint: "body" }, onQueued });
  await expect(new QueuedBatches({ queue: breaking, jobIds }).accept(batch)).rejects.toThrow("no answer");
  expect(counted).toEqual([2, 2]);
  await new QueuedBatches({ queue, jobIds }).accept(batch);
  expect(counted).toEqual([2, 2, 2]);
});

test("an answer whose refusals could not be stored is not given: the repeat gives it", async () => {
  const queue = memoryQueue();
  const batch = buildBatch("acme", {
    idempotency: { key: "one", fingerprint: "body" },
    make: async (from, ids) => {
      const { messages, next } = await buildBatch("acme").make(from, ids);
      return {
        messages: messages.map((message) => (message.index === 1 ? { index: 1, refusal: "wrong" } : message)),
        next,
      };
    },
  });
  const forgetful: BatchQueue = {
    acceptPiece: (...call) => queue.acceptPiece(...call),
    batchUnder: (...call) => queue.batchUnder(...call),
    endBatch: () => Promise.reject(new TransportError("no answer")),
  };
  await expect(new QueuedBatches({ queue: forgetful, jobIds }).accept(batch)).rejects.toThrow("no answer");
  const batches = new QueuedBatches({ queue, jobIds });
  const [finished, again] = [await batches.accept(batch), await batches.accept(batch)];
  expect(finished).toMatchObject({ kind: "answered", isReplay: false });
  expect(again).toMatchObject({ kind: "answered", isReplay: true });
  if (finished.kind !== "answered" || again.kind !== "answered") throw new Error("not answered");
  expect(again.outcomes).toEqual(finished.outcomes);
  expect(finished.outcomes[1]).toEqual({ refusal: "wrong" });
});

test("few pieces are on their way to a store at a time, and none waits for ever", async () => {
  const clock = new ManualClock();
  const turns = new PieceTurns("one", clock);
  const gates: (() => void)[] = [];
  const work = () => new Promise<string>((resolve) => gates.push(() => resolve("in")));
  const pieces = Array.from({ length: 7 }, () => turns.inTurn(0, work).catch((error: Error) => error.message));
  const elsewhere = turns.inTurn(1, work);
  expect(gates.length).toBe(5);
  gates[0]?.();
  expect(await pieces[0]).toBe("in");
  await Promise.resolve();
  expect(gates.length).toBe(6);
  clock.forward(engineLimits.commitWaitMs + 1);
  for (const gate of gates) gate();
  expect(await Promise.all(pieces)).toEqual([
    ...new Array(5).fill("in"),
    ...new Array(2).fill("the queue has not answered for too long"),
  ]);
  expect(await elsewhere).toBe("in");
});
