import { type DeliveryEvent, type EventType, nextEventId } from "../../src/core/event.ts";
import type { ChannelName, JobStatus, SuppressionReason } from "../../src/core/job.ts";
import type { LeaseRole, Mailbox } from "../../src/core/journal.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";

/** A job's place in its box, in the form that a parked and a failed job keep, too. */
export interface BoxEntry {
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly attempts: number;
  /** Waits that cost no attempt; absent: none. */
  readonly waits?: number;
  readonly recipient: string;
  readonly needsScreening?: true;
  readonly template?: string;
  readonly payload: string;
}

export interface OutboxEntry {
  readonly rows: readonly LedgerRow[];
  /** Bytes that the journal's text of the rows has. */
  readonly bytes: number;
}

/** Entries by id, oldest first, like a Redis stream: ids rise for as long as the stream exists. */
export interface Stream<T> {
  lastMs: number;
  lastSequence: number;
  readonly entries: Map<string, T>;
}

export interface StoredJob {
  readonly tenantId: string;
  readonly channel: ChannelName;
  /** As it was written down: a job is also running when it is pending and its box's cursor has passed its entry. */
  readonly status: JobStatus;
  /** Pending although its entry was pulled. */
  readonly isHeldPending: boolean;
  readonly attempts: number;
  readonly waits: number;
  /** The box entry that it was accepted with; null once a settlement, or the ledger, has written the job. */
  readonly entryId: string | null;
  readonly events: readonly DeliveryEvent[];
  /** Reports that wait for its end, one a type. */
  readonly kept: readonly Report[];
  readonly result: JsonObject | null;
}

/** What somebody says about a job. */
export interface Report {
  readonly type: EventType;
  readonly result: JsonObject;
}

/** The jobs of sixteen milliseconds, which leave the journal together. */
export interface Bucket {
  readonly jobs: Map<string, StoredJob>;
  /** Rows that are in the ledger, less the events beyond those that ended a job; null before the first of either. */
  recorded: number | null;
  expiresMs: number | null;
}

/** Requests by the slice that they came in. */
export interface RateWindow {
  slice: number;
  readonly counts: Map<number, number>;
}

export interface Expiring<T> {
  readonly value: T;
  readonly expiresMs: number;
}

/** All that the journal knows of a shard. Plain data, so that it can be copied whole. */
export interface ShardState {
  readonly boxes: Map<string, Stream<BoxEntry>>;
  readonly ready: Set<string>;
  readonly held: Set<string>;
  readonly cursors: Map<string, string>;
  /** When each parked job is due. */
  readonly later: Map<string, number>;
  readonly parked: Map<string, { readonly box: string; readonly entry: BoxEntry }>;
  readonly buckets: Map<string, Bucket>;
  readonly failed: Map<string, Expiring<BoxEntry>>;
  readonly outbox: Stream<OutboxEntry>;
  mark: { readonly first: string; readonly last: string } | null;
  lastEventId: number;
  readonly leases: Map<LeaseRole, Expiring<string>>;
  epoch: number;
  /** By tenant, then recipient. */
  readonly suppressed: Map<string, Map<string, SuppressionReason>>;
  /** By `<box>:<day>`: what is taken of the day's allowance. */
  readonly allowances: Map<string, Expiring<number>>;
  readonly windows: Map<string, RateWindow>;
  closing: string[];
  /** Jobs whose accept was repeated. */
  readonly repeated: Map<string, Expiring<true>>;
  /** By `<tenant>:<key>`. */
  readonly idempotency: Map<string, Expiring<{ readonly jobId: string; readonly fingerprint: string }>>;
}

export function emptyShard(): ShardState {
  return {
    boxes: new Map(),
    ready: new Set(),
    held: new Set(),
    cursors: new Map(),
    later: new Map(),
    parked: new Map(),
    buckets: new Map(),
    failed: new Map(),
    outbox: emptyStream(),
    mark: null,
    lastEventId: 0,
    leases: new Map(),
    epoch: 0,
    suppressed: new Map(),
    allowances: new Map(),
    windows: new Map(),
    closing: [],
    repeated: new Map(),
    idempotency: new Map(),
  };
}

export function emptyStream<T>(): Stream<T> {
  return { lastMs: 0, lastSequence: 0, entries: new Map() };
}

/** Appends at `nowMs`, or right behind the last entry where the clock was set back, and answers the entry's id. */
export function append<T>(stream: Stream<T>, nowMs: number, value: T): string {
  if (nowMs > stream.lastMs) {
    stream.lastMs = nowMs;
    stream.lastSequence = 0;
  } else stream.lastSequence += 1;
  const id = `${stream.lastMs}-${stream.lastSequence}`;
  stream.entries.set(id, value);
  return id;
}

export function isBeyond(entryId: string, other: string): boolean {
  const [ms = 0, sequence = 0] = entryId.split("-").map(Number);
  const [otherMs = 0, otherSequence = 0] = other.split("-").map(Number);
  return ms > otherMs || (ms === otherMs && sequence > otherSequence);
}

/** Redis keeps a key through the very millisecond that it expires in. */
export function alive<T extends { readonly expiresMs: number | null }>(item: T | undefined, nowMs: number): T | null {
  return item !== undefined && (item.expiresMs === null || nowMs <= item.expiresMs) ? item : null;
}

/** A box's name. */
export function boxOf({ tenantId, channel }: Mailbox): string {
  return `${tenantId}/${channel}`;
}

export function mailboxOf(box: string): Mailbox {
  const slash = box.indexOf("/");
  // Made by `boxOf`.
  return { tenantId: box.slice(0, slash), channel: box.slice(slash + 1) as ChannelName };
}

/** The name of the bucket that a job is in: the first eleven digits of its id. */
export function bucketOf(jobId: string): string {
  return jobId.slice(0, 8) + jobId.slice(9, 12);
}

/** When the first jobs of a bucket were made. */
export function bucketMs(bucket: string): number {
  return Number.parseInt(bucket, 16) * 16;
}

/** The bucket, made where there is none (any more). */
export function storedBucket(shard: ShardState, name: string, nowMs: number): Bucket {
  const known = alive(shard.buckets.get(name), nowMs);
  if (known !== null) return known;
  const bucket: Bucket = { jobs: new Map(), recorded: null, expiresMs: null };
  shard.buckets.set(name, bucket);
  return bucket;
}

export function storedJob(shard: ShardState, jobId: string, nowMs: number): StoredJob | null {
  return alive(shard.buckets.get(bucketOf(jobId)), nowMs)?.jobs.get(jobId) ?? null;
}

/** Clicks count once a link, all else once a job. */
export function hasEvent({ events }: StoredJob, { type, result }: Report): boolean {
  return events.some(
    (event) => event.type === type && (type !== "clicked" || JSON.stringify(event.result) === JSON.stringify(result)),
  );
}

/** Gives what happened its id. */
export function newEvent(shard: ShardState, { type, result }: Report, nowMs: number): DeliveryEvent {
  shard.lastEventId = nextEventId(shard.lastEventId, nowMs);
  return { eventId: shard.lastEventId, type, result };
}

/** Attempts and waits as the journal writes them. */
export function countText({ attempts, waits = 0 }: { readonly attempts: number; readonly waits?: number }): string {
  return waits === 0 ? `${attempts}` : `${attempts}+${waits}`;
}

/** What ends the text of a finished job's row. */
export function templateOf({ template }: { readonly template?: string }): readonly string[] {
  return template === undefined ? [] : [template];
}

/** A box entry as the journal writes it, `channel` being one letter. */
export function entryText(entry: BoxEntry, channel: string): string {
  const { jobId, recipient, needsScreening, template, payload, ...count } = entry;
  const named = template === undefined ? "" : `\t${JSON.stringify(template)}`;
  return `${jobId} ${channel}${countText(count)}${needsScreening ? "q" : ""} ${recipient}${named}\n${payload}`;
}

/** Writes the rows as one entry of the outbox. */
export function publish(shard: ShardState, rows: readonly LedgerRow[], nowMs: number): void {
  if (rows.length === 0) return;
  const bytes = rows.reduce((sum, row) => sum + bytesOf(row), rows.length - 1);
  append(shard.outbox, nowMs, { rows, bytes });
}

/** The journal writes a channel, a type and a status as one letter each. */
function bytesOf({ tenantId, jobId, eventId, result, finished }: LedgerRow): number {
  const letter = "x";
  const ending = finished === null ? [] : [letter, finished.attempts, finished.result, ...templateOf(finished)];
  return Buffer.byteLength(JSON.stringify([tenantId, jobId, letter, eventId, letter, result, ...ending]));
}
