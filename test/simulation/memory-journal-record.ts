import { isFinal } from "../../src/core/job.ts";
import type { RecordBatch } from "../../src/core/journal.ts";
import { limits } from "../../src/core/limits.ts";
import { agreedTimeMs, isBeyond, type OutboxEntry, type ShardState } from "./memory-journal-shard.ts";

export interface Recording {
  readonly shardNumber: number;
  readonly done: RecordBatch | null;
  readonly nowMs: number;
}

/** Hands out the outbox's next batch. The caller has checked the lease. */
export function record(shard: ShardState, { shardNumber, done, nowMs }: Recording): RecordBatch | null {
  const tokenOfMark = () => (shard.mark === null ? null : `s${shardNumber}:${shard.mark.first}/${shard.mark.last}`);
  const timeMs = agreedTimeMs(shard, nowMs);
  const isConfirmed = done !== null && done.token === tokenOfMark();
  const ended = isConfirmed ? removeMarked(shard, done, timeMs) : 0;
  letLeave(shard, timeMs, Math.max(limits.leaveJobsMin, 2 * ended));
  const entries = shard.mark === null ? markNext(shard) : markedEntries(shard);
  const token = tokenOfMark();
  if (token === null) return null;
  return {
    token,
    rows: entries.flatMap((entry) => entry.rows),
    more: shard.outbox.entries.size > entries.length,
  };
}

/** Answers how many jobs had their end in the batch. */
function removeMarked(shard: ShardState, { rows }: RecordBatch, timeMs: number): number {
  const last = shard.mark?.last ?? "0-0";
  for (const id of shard.outbox.entries.keys()) if (!isBeyond(id, last)) shard.outbox.entries.delete(id);
  shard.mark = null;
  shard.lastRecorded = Math.max(shard.lastRecorded, ...rows.map(({ eventId }) => eventId));
  const ended = rows.filter(({ finished }) => finished !== null).map(({ jobId }) => jobId);
  append(shard, ended, timeMs);
  return ended.length;
}

function append(shard: ShardState, jobs: readonly string[], timeMs: number): void {
  for (let at = 0; at < jobs.length; at += limits.leaveTogetherMax) {
    shard.leaving.push({ sinceMs: timeMs, jobs: jobs.slice(at, at + limits.leaveTogetherMax) });
  }
}

/** Removes jobs that have been kept for long enough. What has events that are not in the ledger stays for as long again. */
function letLeave(shard: ShardState, timeMs: number, jobsMax: number): void {
  const staying: string[] = [];
  for (let seen = 0; seen < jobsMax; ) {
    const oldest = shard.leaving[0];
    if (oldest === undefined || Math.abs(timeMs - oldest.sinceMs) < limits.jobKeptMs) break;
    shard.leaving.shift();
    seen += oldest.jobs.length;
    for (const jobId of oldest.jobs) {
      const job = shard.jobs.get(jobId);
      if (job === undefined) continue;
      const isRecorded = job.events.every(({ eventId }) => eventId <= shard.lastRecorded);
      if (isFinal(job.status) && isRecorded) shard.jobs.delete(jobId);
      else staying.push(jobId);
    }
  }
  append(shard, staying, timeMs);
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
