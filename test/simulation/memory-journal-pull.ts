import type { MailboxPull, PullRequest, PullResult } from "../../src/core/journal.ts";
import { limits } from "../../src/core/limits.ts";
import {
  append,
  type BoxEntry,
  boxOf,
  bucketOf,
  emptyStream,
  entryText,
  isBeyond,
  mailboxOf,
  type ShardState,
  storedBucket,
  storedJob,
} from "./memory-journal-shard.ts";

/** Hands the owner its next jobs. The caller has checked the lease. */
export function pull(shard: ShardState, request: PullRequest, nowMs: number): PullResult {
  if (request.survey) for (const box of shard.held) shard.ready.add(box);
  const due = dueJobs(shard).filter(([, dueMs]) => dueMs <= nowMs);
  const moved = due.slice(0, limits.pullDueMax);
  for (const [jobId] of moved) unpark(shard, jobId, nowMs);
  const ready = [...shard.ready].slice(0, limits.pullReadyMax);
  for (const box of ready) {
    shard.ready.delete(box);
    shard.held.add(box);
  }
  const boxes = request.boxes.map((asked) => readBox(shard, asked, nowMs));
  const next = dueJobs(shard)[0];
  return {
    boxes,
    ready: ready.map(mailboxOf),
    more: moved.length === limits.pullDueMax || ready.length === limits.pullReadyMax,
    nextDueMs: next === undefined ? null : Math.max(0, next[1] - nowMs),
  };
}

/** Earliest first. */
function dueJobs({ later }: ShardState): [string, number][] {
  return [...later].sort(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1));
}

function unpark(shard: ShardState, jobId: string, nowMs: number): void {
  const parked = shard.parked.get(jobId);
  shard.parked.delete(jobId);
  shard.later.delete(jobId);
  if (parked === undefined) return;
  const stream = shard.boxes.get(parked.box) ?? emptyStream();
  shard.boxes.set(parked.box, stream);
  append(stream, nowMs, parked.entry);
  shard.ready.add(parked.box);
}

function readBox(shard: ShardState, { box: mailbox, after, entriesMax }: MailboxPull, nowMs: number) {
  const box = boxOf(mailbox);
  const behind = [...(shard.boxes.get(box)?.entries ?? [])].filter(([id]) => after === null || isBeyond(id, after));
  const { read, more } = readInSteps(behind, entriesMax);
  if (read.length === 0 && after === null) shard.held.delete(box);
  const cursor = shard.cursors.get(box) ?? null;
  const jobs = read.map(([entryId, entry]) => {
    const suppressed = shard.suppressed.get(mailbox.tenantId)?.get(entry.recipient) ?? null;
    const isFirstPull = cursor === null || isBeyond(entryId, cursor);
    const wasOut = !isFirstPull || entry.attempts > 0 || entry.waits !== undefined;
    const place = { tenantId: mailbox.tenantId, entryId };
    const isReported = wasOut && (storedJob(shard, entry.jobId, nowMs)?.kept.length ?? 0) > 0;
    if (isReported) return { ...entry, ...place, suppressed: null, isReported } as const;
    if (suppressed !== null && isFirstPull) holdPending(shard, entry.jobId, nowMs);
    return { ...entry, ...place, suppressed };
  });
  const last = read.at(-1)?.[0];
  if (last !== undefined && (cursor === null || isBeyond(last, cursor))) shard.cursors.set(box, last);
  return { box: mailbox, jobs, more };
}

/** In growing steps, until there is nothing more, or enough. */
function readInSteps(entries: readonly [string, BoxEntry][], entriesMax: number) {
  let taken = 0;
  let bytes = 0;
  let more = false;
  for (let step = 4; taken < entriesMax; ) {
    step = Math.min(2 * step, entriesMax - taken);
    const piece = entries.slice(taken, taken + step);
    taken += piece.length;
    for (const [, entry] of piece) bytes += bytesOf(entry);
    more = piece.length === step;
    if (!more || bytes >= limits.pullBytesPerBoxMax) break;
  }
  return { read: entries.slice(0, taken), more };
}

function bytesOf(entry: BoxEntry): number {
  return Buffer.byteLength(entryText(entry, "x"));
}

/** What is suppressed at its first pull was never running. */
function holdPending(shard: ShardState, jobId: string, nowMs: number): void {
  const job = storedJob(shard, jobId, nowMs);
  if (job?.status !== "pending") return;
  storedBucket(shard, bucketOf(jobId), nowMs).jobs.set(jobId, { ...job, isHeldPending: true });
}
