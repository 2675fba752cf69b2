import type { RecordBatch } from "../../src/core/journal.ts";
import { limits } from "../../src/core/limits.ts";
import {
  alive,
  bucketMs,
  bucketOf,
  isBeyond,
  type OutboxEntry,
  type ShardState,
  storedBucket,
} from "./memory-journal-shard.ts";

export interface Recording {
  readonly shardNumber: number;
  readonly done: RecordBatch | null;
  readonly nowMs: number;
}

/** Hands out the outbox's next batch. The caller has checked the lease. */
export function record(shard: ShardState, { shardNumber, done, nowMs }: Recording): RecordBatch | null {
  const tokenOfMark = () => (shard.mark === null ? null : `s${shardNumber}:${shard.mark.first}/${shard.mark.last}`);
  if (done !== null && done.token === tokenOfMark()) removeMarked(shard, done, nowMs);
  expireCompleteBuckets(shard, nowMs);
  const entries = shard.mark === null ? markNext(shard) : markedEntries(shard);
  const token = tokenOfMark();
  if (token === null) return null;
  return {
    token,
    rows: entries.flatMap((entry) => entry.rows),
    more: shard.outbox.entries.size > entries.length,
  };
}

function removeMarked(shard: ShardState, done: RecordBatch, nowMs: number): void {
  const last = shard.mark?.last ?? "0-0";
  for (const id of shard.outbox.entries.keys()) if (!isBeyond(id, last)) shard.outbox.entries.delete(id);
  shard.mark = null;
  const counts = new Map<string, number>();
  for (const { jobId } of done.rows) counts.set(bucketOf(jobId), (counts.get(bucketOf(jobId)) ?? 0) + 1);
  for (const [name, count] of counts) {
    const bucket = storedBucket(shard, name, nowMs);
    bucket.recorded = (bucket.recorded ?? 0) + count;
    shard.closing.push(name);
  }
}

/** A bucket that is not complete comes again with its next row. */
function expireCompleteBuckets(shard: ShardState, nowMs: number): void {
  let seen = 0;
  for (const name of shard.closing.slice(0, 256)) {
    if (bucketMs(name) > nowMs - limits.bucketClosesMs) break;
    const bucket = alive(shard.buckets.get(name), nowMs);
    if (bucket !== null && bucket.recorded === bucket.jobs.size) bucket.expiresMs = nowMs + limits.jobKeptMs;
    seen += 1;
  }
  shard.closing = shard.closing.slice(seen);
}

function markedEntries(shard: ShardState): OutboxEntry[] {
  const { mark, outbox } = shard;
  const entries = [...outbox.entries];
  return entries.filter(([id]) => mark !== null && !isBeyond(id, mark.last)).map(([, entry]) => entry);
}

function markNext(shard: ShardState): OutboxEntry[] {
  let rows = 0;
  let bytes = 0;
  let count = 0;
  const entries = [...shard.outbox.entries];
  for (const [, entry] of entries) {
    rows += entry.rows.length;
    bytes += entry.bytes;
    const isFull = count > 0 && (rows > limits.recordRowsMax || bytes > limits.recordBytesMax);
    if (isFull || count === limits.recordEntriesMax) break;
    count += 1;
  }
  const batch = entries.slice(0, count);
  const [first, last] = [batch[0]?.[0], batch.at(-1)?.[0]];
  if (first !== undefined && last !== undefined) shard.mark = { first, last };
  return batch.map(([, entry]) => entry);
}
