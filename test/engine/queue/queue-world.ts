import { afterAll, beforeAll } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import {
  FENCED,
  type Lease,
  type NewJob,
  type RecorderQueue,
  type Settlement,
} from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { PULL, ROOM } from "./queue-pulls.ts";

export const PER_MINUTE = 1_000_000;
export const ACME_MAIL = { tenantId: "acme", channel: "email" } as const;

export let redis: RedisServer;
export let queue: RedisQueue;
export const jobIds = new JobIds(systemClock, systemRandom);
let shards = 0;
/** How far the process's clock is ahead. */
let passedMs = 0;

export function nextShard(): number {
  return shards++;
}

/** `redis` and `queue`, for the tests of the file that calls it. */
export function useQueueWorld(): void {
  beforeAll(async () => {
    shards = 0;
    redis = await startRedis();
    queue = new RedisQueue({
      channels: CHANNELS,
      address: { kind: "socket", path: redis.path },
      clock: { ...systemClock, nowMs: () => systemClock.nowMs() + passedMs },
      random: systemRandom,
      telemetry: new QuietTelemetry(),
    });
    await queue.start();
  });

  afterAll(async () => {
    await queue.stop();
    await redis.stop();
  });
}

/** A shard of the test's own, owned by it. */
export async function world(tenantId = "acme") {
  passedMs = 0;
  const tenant: TenantRef = { tenantId, shard: nextShard() };
  const lease = await acquire(tenant.shard, "dispatcher");
  const recorder = await acquire(tenant.shard, "recorder");
  return { tenant, lease, recorder, prefix: `wb:{s${String(tenant.shard).padStart(2, "0")}}` };
}

export async function acquire(shard: number, role: "dispatcher" | "recorder"): Promise<Lease> {
  const lease = await queue.acquire(shard, role, "test", null);
  if (lease === null) throw new Error("the lease is taken");
  return lease;
}

/** Sets the clock of Redis, as far as a shard's scripts know it: the time that was agreed on stays. */
export async function stepClock(prefix: string, ms: number): Promise<void> {
  const [skew, agreed] = ((await redis.client.get(`${prefix}:skew`)) ?? "0").split(" ");
  await redis.client.set(`${prefix}:skew`, `${Number(skew) + ms} ${agreed ?? Date.now()}`);
}

/** Sets the clock of the process so far ahead, until another world begins. */
export function setProcessClock(aheadMs: number): void {
  passedMs = aheadMs;
}

/** Time passes, as its owner has said and as the clock of its process shows. */
export async function passShardTime(prefix: string, ms: number): Promise<void> {
  passedMs += ms;
  const [skew, agreed] = ((await redis.client.get(`${prefix}:skew`)) ?? "0").split(" ");
  await redis.client.set(`${prefix}:skew`, `${Number(skew) + ms} ${Number(agreed ?? Date.now()) + ms}`);
}

export function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    jobId: jobIds.next(),
    channel: "email",
    recipient: "ann@example.com",
    payload: '{"to":"ann@example.com"}',
    idempotency: null,
    ...overrides,
  };
}

export async function accept(tenant: TenantRef, overrides: Partial<NewJob> = {}): Promise<string> {
  const answer = await queue.accept(tenant, PER_MINUTE, newJob(overrides));
  if (answer.kind !== "accepted") throw new Error(`not accepted: ${answer.kind}`);
  return answer.jobId;
}

export async function pullOne(
  lease: Lease,
  tenantId: string,
  after: string | null = null,
): Promise<readonly QueuedJob[]> {
  const result = await queue.pull(lease, {
    ...PULL,
    tenantQueues: [{ tenantQueue: { tenantId, channel: "email" }, after, entriesMax: 64, bytesMax: ROOM }],
  });
  if (result === FENCED) throw new Error("fenced");
  return result.tenantQueues[0]?.jobs ?? [];
}

export function first<T>(items: readonly T[]): T {
  const item = items[0];
  if (item === undefined) throw new Error("the list is empty");
  return item;
}

export function sent(job: QueuedJob): Settlement {
  return { kind: "final", job, status: "success", result: {}, event: { type: "sent", result: {} } };
}

export function failed(job: QueuedJob): Settlement {
  const result = { error: "refused" };
  return { kind: "final", job, status: "failed", result, event: { type: "failed", result } };
}

/** A batch of one shard alone, and whether its outbox holds more. */
export interface OneBatch {
  readonly token: string;
  readonly rows: readonly StoredEventRow[];
  readonly more: boolean;
}

/** The recorded rows of one shard; a piece without rows to write is passed over, as a recorder does. */
export async function record(
  lease: Lease,
  done: Omit<OneBatch, "more"> | null,
  from: Pick<RecorderQueue, "record"> = queue,
): Promise<OneBatch | null> {
  const { shard } = lease;
  const piece = done === null ? null : { shard, token: done.token, batch: done.token, rows: done.rows };
  const { fenced, batches, more } = await from.record([{ lease, done: piece, refused: null, takes: true }]);
  if (fenced.length > 0) throw new Error("fenced");
  const [batch] = batches;
  if (batch === undefined) return null;
  const rows = batch.pieces.flatMap((one) => one.rows);
  if (batch.state === "recorded") return record(lease, { token: batch.token, rows }, from);
  return { token: batch.token, rows, more: more.includes(shard) };
}
