import { Cluster, type Redis } from "ioredis";
import type { Clock } from "../../domain/clock.ts";
import { firstEventIdAt } from "../../domain/jobs/event.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type RedisAddress, redisFailure } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { RedisInspection } from "./redis-inspection.ts";

/** The decision about jobs that were queued when the backup was taken, and may have been sent since. */
export type QueuedDecision = "send" | "fail";

/**
 * Unix ms: jobs that were accepted before are no longer sent, unless they are scheduled for a time after the restore.
 */
const NOT_SENT_BEFORE = "not_sent_before";
const RESTORED_AT = "restored_at";
const WITHIN_MS = 10_000;

export interface RestoredQueueOptions {
  readonly address: RedisAddress;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

export interface Restored {
  /** The point in time of the backup. */
  readonly cutMs: number;
  /** The last event in the event store. */
  readonly lastEventId: number;
  readonly queued: QueuedDecision;
}

/** Counts the jobs of all tenants. */
export async function countQueuedJobs(options: RestoredQueueOptions): Promise<number> {
  return withInspection(options, async ({ connection }) => {
    let jobs = 0;
    for await (const { node, prefix } of scanShards(connection)) {
      for (let cursor = "0", begun = false; cursor !== "0" || !begun; begun = true) {
        const [next, fields] = await node.hscan(`${prefix}:tenants`, cursor, "COUNT", 1000);
        for (let at = 0; at < fields.length; at += 2)
          jobs += fields[at] === "" ? 0 : Number.parseInt(fields[at + 1] ?? "0", 10);
        cursor = next;
      }
    }
    return jobs;
  });
}

/**
 * Prepares a queue that was restored from a backup, before any work on it. Safe to repeat.
 *
 * The event clock of each shard is set beyond every event that may have been handed out: beyond the machine's time, the
 * backup's, and the event store's last. So no reader that has read an event finds another one under its id.
 */
export async function prepareRestoredQueue(options: RestoredQueueOptions, restored: Restored): Promise<void> {
  const { cutMs, lastEventId, queued } = restored;
  const beyond = Math.max(firstEventIdAt(Math.max(cutMs, options.clock.nowMs())), lastEventId);
  await withInspection(options, async ({ connection, meta }) => {
    for await (const { node, prefix } of scanShards(connection)) {
      const last = Number((await node.get(`${prefix}:clock`)) ?? 0);
      if (last < beyond) await node.set(`${prefix}:clock`, String(beyond));
    }
    await meta.set(RESTORED_AT, String(options.clock.nowMs()));
    // An earlier decision ends with its jobs; two backups in a row may have been restored.
    await meta.set(NOT_SENT_BEFORE, queued === "fail" ? String(cutMs) : "0");
  });
}

const listClockKeys = (shards: number) => Array.from({ length: shards }, (_, shard) => `${shardPrefix(shard)}:clock`);

/** Returns the last event id that the queue has handed out; 0: none. */
export async function readLastEventId({ connection }: RedisInspection, shards: number): Promise<number> {
  const clocks = await Promise.all(listClockKeys(shards).map((key) => connection.get(key))).catch((error: unknown) => {
    throw redisFailure(error);
  });
  return Math.max(0, ...clocks.map(Number));
}

/**
 * Sets the event clocks of all shards beyond every id that may have been handed out, unless they already are;
 * `lastEventId` is known for certain.
 */
export async function moveEventClocks(
  inspection: RedisInspection,
  { shards, lastEventId, nowMs }: { readonly shards: number; readonly lastEventId: number; readonly nowMs: number },
): Promise<void> {
  const { connection } = inspection;
  const beyond = Math.max(firstEventIdAt(nowMs), lastEventId);
  try {
    for (const key of listClockKeys(shards)) {
      if (Number((await connection.get(key)) ?? 0) < beyond) await connection.set(key, String(beyond));
    }
  } catch (error) {
    throw redisFailure(error);
  }
}

/** Jobs accepted before `acceptedMs` and to be sent before `dueMs` (Unix ms) are not sent. */
export interface NotSentBefore {
  readonly acceptedMs: number;
  readonly dueMs: number;
}

/** Returns the decision of a restore. Null: all jobs are sent. */
export async function notSentBefore(options: RestoredQueueOptions): Promise<NotSentBefore | null> {
  const known = await withInspection(options, async ({ meta }) => meta.read());
  const acceptedMs = Number(known[NOT_SENT_BEFORE] ?? 0);
  return acceptedMs === 0 ? null : { acceptedMs, dueMs: Number(known[RESTORED_AT] ?? acceptedMs) };
}

async function withInspection<T>(options: RestoredQueueOptions, work: (inspection: RedisInspection) => Promise<T>) {
  const inspection = await RedisInspection.open({ ...options, withinMs: WITHIN_MS });
  try {
    return await work(inspection);
  } catch (error) {
    throw redisFailure(error);
  } finally {
    await inspection.close();
  }
}

/** Every shard has a hash of its tenants as soon as it has had a job. */
async function* scanShards(
  connection: RedisInspection["connection"],
): AsyncGenerator<{ readonly node: Redis; readonly prefix: string }> {
  const nodes = connection instanceof Cluster ? connection.nodes("master") : [connection];
  for (const node of nodes) {
    const found = new Set<string>();
    for (let cursor = "0", begun = false; cursor !== "0" || !begun; begun = true) {
      const [next, keys] = await node.scan(cursor, "MATCH", "wb:{s*}:tenants", "COUNT", 1000);
      for (const key of keys) found.add(key.slice(0, -":tenants".length));
      cursor = next;
    }
    for (const prefix of found) yield { node, prefix };
  }
}
