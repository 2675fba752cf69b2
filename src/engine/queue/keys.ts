import type { LeaseRole } from "../../domain/jobs/queue.ts";

/**
 * Returns the prefix of a shard's keys. Every key of a shard carries the shard's hash tag, which keeps a script within
 * one slot of a Redis Cluster. The scripts build the same names from the shard's prefix; `prelude.lua` lists them.
 */
export function shardPrefix(shard: number): string {
  return `wb:{s${String(shard).padStart(2, "0")}}`;
}

/** Returns the shard of a prefix that a script returned. */
export function shardOfPrefix(prefix: string): number {
  return Number(/\{s(\d+)\}$/.exec(prefix)?.[1]);
}

/**
 * Returns the hash of a job's record. Job records share a hash: the first eleven digits of a UUIDv7 are its time in
 * steps of 16 ms, so jobs that are accepted together lie together and are written with one command. Small hashes are
 * stored compactly: a record costs about 60 bytes; a key per record would cost 180.
 */
export function jobBucket(jobId: string): string {
  return jobId.slice(0, 8) + jobId.slice(9, 12);
}

/** Returns the rest of the job id: the record's field in its bucket. */
export function jobField(jobId: string): string {
  return jobId.slice(12);
}

/** Asks a shard's owner to end a job that it has not begun: "<shard> <tenant queue> <job id>". */
export const CANCEL_CHANNEL = "wb:cancel";
/** Announces that shard 7 has queued jobs as "7". */
export const JOBS_CHANNEL = "wb:mail";
/** A tenant's id, or "" for all. */
export const CHANGED_CHANNEL = "wb:changed";

/** "<role> <shard>" of a lease that was released. */
export const RELEASED_CHANNEL = "wb:released";

/** Questions to the owners of shards (questions.ts). */
export const QUESTIONS_CHANNEL = "wb:asked";

/** The prefix of all keys about processes. */
export const MEMBERS_PREFIX = "wb:{members}";

export function beatsKey(role: LeaseRole): string {
  return `${MEMBERS_PREFIX}:${role}:beats`;
}

/** Settings that all processes must agree on (format.ts). */
export const META_KEY = "wb:{meta}";
