import {
  type DeliveryEvent,
  EVENT_EPOCH_MS,
  type EventType,
  isByReader,
  nextEventId,
} from "../../src/domain/jobs/event.ts";
import type { FinishedJob, StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { countsFromMessage, encodeFallback, type Fallback } from "../../src/domain/jobs/fallback.ts";
import type {
  Attempt,
  ChannelName,
  JobRecord,
  JobStatus,
  KeptContent,
  StoredPayload,
  SuppressionReason,
} from "../../src/domain/jobs/job.ts";
import type { LeaseRole, LeaseState, QueueQuota, TenantQueue } from "../../src/domain/jobs/queue.ts";
import type { Tag } from "../../src/domain/jobs/tags.ts";
import { limits } from "../../src/domain/limits.ts";
import type { JsonObject } from "../../src/domain/texts/json.ts";

/** A job's entry in its tenant queue; a parked job keeps it in the same form. */
export interface QueueEntry {
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly attempts: number;
  /** Waits that cost no attempt; absent: none. */
  readonly waits?: number;
  readonly recipient: string;
  readonly needsScreening?: true;
  readonly template?: string;
  readonly payload: string;
  readonly stored?: StoredPayload;
  readonly traceparent?: string;
  readonly tags?: readonly Tag[];
  readonly topic?: string;
  readonly dueMs?: number;
  readonly fallback?: Fallback;
}

/** What counts as a job's payload. */
type Content = Pick<QueueEntry, "payload" | "stored" | "traceparent" | "tags" | "topic" | "dueMs" | "fallback">;

/** Entries by id, oldest first. */
export interface QueueEntries {
  readonly entries: Map<string, QueueEntry>;
}

/** A job that waits for a retry or, if it is lent, for the outcome of the delivery in flight elsewhere. */
export interface Parked {
  readonly tenantQueue: string;
  readonly entry: QueueEntry;
  /** The token of the lease that it was lent under. */
  readonly lentUnder?: string;
  /** For how long. */
  readonly lentForMs?: number;
}

/** A stretch of a shard's outbox, by its first and last entry. */
export interface MarkedPiece {
  readonly shard: number;
  readonly first: string;
  readonly last: string;
}

export interface OutboxEntry {
  readonly rows: readonly StoredEventRow[];
  /** Bytes that the queue's text of the rows has. */
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
  /** As stored: a pending job is running, too, once its tenant queue's cursor has passed its entry. */
  readonly status: JobStatus;
  /** Pending although its entry was pulled. */
  readonly isHeldPending: boolean;
  readonly attempts: number;
  readonly waits: number;
  /**
   * The entry that it was accepted with, or `laterPlace` while it waits for its time; null once a settlement, or the event
   * store, has written the job.
   */
  readonly entryId: string | null;
  readonly events: readonly DeliveryEvent[];
  /** Reports that wait for its end, one a type. */
  readonly kept: readonly Report[];
  readonly result: JsonObject | null;
  readonly tries?: readonly Attempt[];
  /** Of a job that was retried: the event id before which its present life began, and when that was asked for. */
  readonly life?: { readonly began: number; readonly atMs: number };
}

/** What somebody says about a job. */
export interface Report {
  readonly type: EventType;
  readonly result: JsonObject;
}

/** Finished jobs that were recorded together, and when (shard time). */
export interface Leaving {
  readonly sinceMs: number;
  readonly jobs: readonly string[];
}

/** Requests by the slice that they came in. */
export interface RateWindow {
  slice: number;
  readonly counts: Map<number, number>;
  /** Of a window that was used up within one slice. */
  last?: { readonly slice: number; readonly total: number; readonly atMs: number };
}

export interface Expiring<T> {
  readonly value: T;
  readonly expiresMs: number;
}

/** All that the queue knows of a shard. Plain data, so that it can be copied whole. */
export interface ShardState {
  readonly tenantQueues: Map<string, QueueEntries>;
  /** The number of the last entry, over all tenant queues. */
  lastEntry: number;
  readonly ready: Set<string>;
  readonly held: Set<string>;
  readonly cursors: Map<string, string>;
  /** When each parked job is due (shard time). */
  readonly later: Map<string, number>;
  readonly parked: Map<string, Parked>;
  /** What the shard's time is ahead of the clock. */
  skewMs: number;
  /** The shard's time at the last pull. */
  agreedMs: number | null;
  /** `skewMs` by the estimate of an owner that was clearly behind, until it has said why. */
  estimatedSkew: Expiring<number> | null;
  /** The shard's times of the first and the last pull in a row that found both clocks ahead of it. */
  clocksAhead: Expiring<{ readonly sinceMs: number; readonly lastMs: number }> | null;
  readonly jobs: Map<string, StoredJob>;
  /** What each tenant has unfinished. */
  readonly load: Map<string, QueueQuota>;
  readonly outbox: Stream<OutboxEntry>;
  /** The piece of the outbox that is being recorded; with the group that it is written in, unless it is alone. */
  mark: { readonly first: string; readonly last: string; readonly group: readonly MarkedPiece[] | null } | null;
  lastEventId: number;
  readonly leases: Map<LeaseRole, LeaseState>;
  epoch: number;
  /** By tenant, then recipient. */
  readonly suppressed: Map<string, Map<string, SuppressionReason>>;
  /** By `<tenant queue>:<day>`: the units taken of the day's allowance. */
  readonly allowances: Map<string, Expiring<number>>;
  readonly windows: Map<string, RateWindow>;
  /** By tenant: bytes of the contents of its failed jobs in the outbox. */
  readonly keeping: Map<string, number>;
  /** By tenant: bytes of the contents that were kept within a day. */
  readonly kept: Map<string, Expiring<number>>;
  /** The last event that is in the event store. */
  lastRecorded: number;
  leaving: Leaving[];
  /** By `<tenant>:<key>`. */
  readonly idempotency: Map<string, Expiring<{ readonly jobId: string; readonly fingerprint: string }>>;
  /** Bytes that a tenant's idempotency keys take, by the hour (unix) in which they were claimed. */
  readonly claims: Map<string, Expiring<Map<number, number>>>;
  /** Batches under a key, by the base of their jobs' ids: the indexes that were queued, and the refusals in its answer. */
  readonly batches: Map<string, Expiring<{ readonly queued: readonly number[]; readonly refused: string | null }>>;
}

export function emptyShard(): ShardState {
  return {
    tenantQueues: new Map(),
    lastEntry: 0,
    ready: new Set(),
    held: new Set(),
    cursors: new Map(),
    later: new Map(),
    parked: new Map(),
    skewMs: 0,
    agreedMs: null,
    estimatedSkew: null,
    clocksAhead: null,
    jobs: new Map(),
    load: new Map(),
    outbox: emptyStream(),
    mark: null,
    lastEventId: 0,
    leases: new Map(),
    epoch: 0,
    suppressed: new Map(),
    allowances: new Map(),
    windows: new Map(),
    keeping: new Map(),
    kept: new Map(),
    lastRecorded: 0,
    leaving: [],
    idempotency: new Map(),
    claims: new Map(),
    batches: new Map(),
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

/** Appends a job to its tenant queue, after all former entries, and returns the entry's id. */
export function enqueue(shard: ShardState, tenantQueue: string, entry: QueueEntry, nowMs: number): string {
  shard.lastEntry = Math.max(shard.lastEntry + 1, (nowMs - EVENT_EPOCH_MS) * ENTRIES_PER_MS);
  const entryId = `${shard.lastEntry}-0`;
  const known = shard.tenantQueues.get(tenantQueue);
  if (known === undefined) shard.tenantQueues.set(tenantQueue, { entries: new Map([[entryId, entry]]) });
  else known.entries.set(entryId, entry);
  return entryId;
}

const ENTRIES_PER_MS = 256;

/** The time that retries are due by. */
export function shardTimeMs({ skewMs }: ShardState, nowMs: number): number {
  return nowMs + skewMs;
}

/** What a wait for a time begins at: a clock that was set back since the last pull counts from there. */
export function waitsFromMs(shard: ShardState, nowMs: number): number {
  return Math.max(shardTimeMs(shard, nowMs), agreedTimeMs(shard, nowMs));
}

/** Of the clocks of the queue, of a caller and of the shard, the one between the others. */
export function middleOf(queueMs: number, callerMs: number, shardMs: number): number {
  return Math.max(Math.min(queueMs, callerMs), Math.min(Math.max(queueMs, callerMs), shardMs));
}

/** When a job is due by the shard's time that is scheduled for `dueMs`, and at what time of day; null: now. */
export function dueAt(
  shard: ShardState,
  job: { readonly dueMs: number; readonly fallback?: Fallback },
  callerMs: number,
  nowMs: number,
): { readonly laterMs: number; readonly timeMs: number } | null {
  const { dueMs } = job;
  const fromMs = waitsFromMs(shard, nowMs);
  const waitMs = Math.ceil(dueMs - callerMs);
  if (countsFromMessage(job))
    return waitMs > 0 ? { laterMs: fromMs + waitMs, timeMs: Math.min(nowMs, fromMs) + waitMs } : null;
  const clocks = [nowMs, Math.floor(callerMs), fromMs] as const;
  const [middleMs, lastMs] = [middleOf(...clocks), Math.max(...clocks)];
  const isApart = lastMs - Math.min(...clocks) > limits.clocksApartMs;
  const timeMs = Math.round(dueMs);
  if (timeMs <= middleMs) return null;
  return { laterMs: fromMs + Math.max(0, timeMs - (isApart ? lastMs : middleMs)), timeMs };
}

/** What finished jobs leave by: a step of the clock since the last pull has not moved it. */
export function agreedTimeMs(shard: ShardState, nowMs: number): number {
  return shard.agreedMs ?? shardTimeMs(shard, nowMs);
}

/** Counts a job in, or one that has ended out. */
export function count(shard: ShardState, tenantId: string, jobs: 1 | -1, bytes: number): void {
  const { jobs: jobsBefore, bytes: bytesBefore } = shard.load.get(tenantId) ?? { jobs: 0, bytes: 0 };
  const load = { jobs: Math.max(0, jobsBefore + jobs), bytes: Math.max(0, bytesBefore + bytes * jobs) };
  if (load.jobs === 0) shard.load.delete(tenantId);
  else shard.load.set(tenantId, load);
}

/** What a job counts for. */
export function payloadBytes(entry: Content): number {
  return entry.stored?.bytes ?? Buffer.byteLength(payloadText(entry));
}

/** A payload as the queue writes it. */
function payloadText(entry: Content): string {
  const { payload, stored, traceparent } = entry;
  if (stored !== undefined) return payload;
  const extras = extrasText(entry);
  const members = [
    ...(traceparent === undefined ? [] : [`"$trace":"${traceparent}",`]),
    ...(extras === "" ? [] : [`"$job":"${extras}",`]),
    ...(entry.topic === undefined ? [] : [`"$topic":"${entry.topic}",`]),
  ];
  return payload.replace("{", `{${members.join("")}`);
}

function extrasText({ tags, dueMs, fallback }: Content): string {
  if (tags === undefined && dueMs === undefined && fallback === undefined) return "";
  return `${tagsText(tags)}|${dueMs ?? ""}${fallback === undefined ? "" : `|${encodeFallback(fallback)}`}`;
}

function tagsText(tags: readonly Tag[] = []): string {
  return tags.map(({ name, value }) => `${name}=${value}`).join(";");
}

/** In the place of an entry's id. */
export function laterPlace(dueMs: number): string {
  return `~${dueMs}`;
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

/** A tenant queue's name. */
export function tenantQueueName({ tenantId, channel }: TenantQueue): string {
  return `${tenantId}/${channel}`;
}

export function tenantQueueOf(tenantQueue: string): TenantQueue {
  const slash = tenantQueue.indexOf("/");
  return { tenantId: tenantQueue.slice(0, slash), channel: tenantQueue.slice(slash + 1) };
}

export function storedJob(shard: ShardState, jobId: string): StoredJob | null {
  return shard.jobs.get(jobId) ?? null;
}

/** A job that has left, as the event store has it. */
export function storedOf({ tenantId, channel, status, attempts, result, events, tries, began }: JobRecord): StoredJob {
  const known = { tenantId, channel, status, attempts, result, events, ...(tries !== undefined && { tries }) };
  const life = began === undefined ? {} : { life: { began, atMs: 0 } };
  return { ...known, ...life, waits: 0, kept: [], isHeldPending: false, entryId: null };
}

/** Whether a report that waits for the job's end shows that the provider has it. */
export function isWithProvider({ kept }: Pick<StoredJob, "kept">): boolean {
  return kept.some(({ type }) => !isByReader(type));
}

export function hasEvent({ events, life }: StoredJob, report: Report): boolean {
  return hasReport(
    events.filter(({ eventId }) => eventId > (life?.began ?? 0)),
    report,
  );
}

/** Clicks count once a link, all else once a life of the job; but a person's counts after a machine's. */
export function hasReport(known: readonly Report[], { type, result }: Report): boolean {
  return known.some((one) => {
    if (one.type !== type || (one.result["machine"] === true && result["machine"] !== true)) return false;
    return type !== "clicked" || one.result["url"] === result["url"];
  });
}

/** The next event's id, which tells the time, and none that is far ahead of the time that the last pull agreed on. */
export function nextIdOf(shard: ShardState, nowMs: number): number {
  const farMs = agreedTimeMs(shard, nowMs) + limits.clocksApartMs;
  return nextEventId(shard.lastEventId, Math.min(nowMs, farMs));
}

/** Gives what happened its id. */
export function newEvent(shard: ShardState, { type, result }: Report, nowMs: number): DeliveryEvent {
  shard.lastEventId = nextIdOf(shard, nowMs);
  return { eventId: shard.lastEventId, type, result };
}

/** A job that has ended, with the reports that waited for that as events behind those it has, and their rows. */
export function withKept(
  shard: ShardState,
  { ended, jobId, kept }: { readonly ended: StoredJob; readonly jobId: string; readonly kept: readonly Report[] },
  nowMs: number,
): { readonly job: StoredJob; readonly rows: readonly StoredEventRow[] } {
  const { tenantId, channel } = ended;
  const rows: StoredEventRow[] = [];
  let job: StoredJob = { ...ended, kept: [] };
  for (const report of kept) {
    if (hasEvent(job, report)) continue;
    const event = newEvent(shard, report, nowMs);
    job = { ...job, events: [...job.events, event] };
    rows.push({ tenantId, jobId, channel, ...event, finished: null });
  }
  return { job, rows };
}

/** Attempts and waits as the queue writes them. */
export function countText({ attempts, waits }: { readonly attempts: number; readonly waits?: number }): string {
  return waits === undefined ? `${attempts}` : `${attempts}+${waits}`;
}

/** What ends the text of a finished job's row; `channel` is one letter. */
export function endingOf(job: EndedJob, finished: FinishedJob): readonly unknown[] {
  const { template, recipient = "", tries = [], began, kept, tags } = finished;
  const rest = {
    ...(began !== undefined && { began }),
    ...(kept !== undefined && { kept: keptText(job, finished.attempts, kept) }),
    ...(tags !== undefined && { tags: tagsText(tags) }),
  };
  if (Object.keys(rest).length > 0) return [template ?? null, recipient, tries, rest];
  if (recipient === "" && tries.length === 0) return template === undefined ? [] : [template];
  return [template ?? null, recipient, ...(tries.length === 0 ? [] : [tries])];
}

interface EndedJob {
  readonly jobId: string;
  readonly channel: string;
}

/** The entry of a failed job, with all that was counted. */
function keptText(job: EndedJob, attempts: number, { settlements, ...kept }: KeptContent): string {
  const waits = settlements - attempts;
  return entryText({ ...kept, ...job, attempts, ...(waits > 0 && { waits }) }, job.channel);
}

/** An entry as the queue writes it, `channel` being one letter. */
export function entryText(entry: QueueEntry, channel: string): string {
  const { jobId, recipient, needsScreening, template, stored, traceparent = "", attempts, waits } = entry;
  const payload = payloadText(entry);
  const extras = extrasText(entry);
  const behind = [traceparent, extras, entry.topic ?? ""].join("\t").replace(/\t+$/, "");
  const traced = behind === "" ? "" : `\t${behind}`;
  const count = { attempts, ...(waits !== undefined && { waits }) };
  const named = template === undefined ? "" : `\t${JSON.stringify(template)}`;
  const elsewhere =
    stored === undefined ? "" : `${named === "" ? "\t" : ""}\t${stored.sha256} ${stored.bytes}${traced}`;
  return `${jobId} ${channel}${countText(count)}${needsScreening ? "q" : ""} ${recipient}${named}${elsewhere}\n${payload}`;
}

/** Writes the rows as one entry of the outbox. */
export function publish(shard: ShardState, rows: readonly StoredEventRow[], nowMs: number): void {
  if (rows.length === 0) return;
  const bytes = rows.reduce((sum, row) => sum + bytesOf(row), rows.length - 1);
  append(shard.outbox, nowMs, { rows, bytes });
}

/** The queue writes a channel, a type and a status as one letter each. */
function bytesOf({ tenantId, jobId, eventId, result, finished }: StoredEventRow): number {
  const letter = "x";
  const ending =
    finished === null
      ? []
      : [letter, finished.attempts, finished.result, ...endingOf({ jobId, channel: letter }, finished)];
  return Buffer.byteLength(JSON.stringify([tenantId, jobId, letter, eventId, letter, result, ...ending]));
}
