import {
  type DeliveryEvent,
  EVENT_EPOCH_MS,
  EVENT_IDS_PER_MS,
  type EventType,
  withoutTime,
} from "../../domain/jobs/event.ts";
import type { StoredEventRow } from "../../domain/jobs/event-store.ts";
import { countsFromMessage } from "../../domain/jobs/fallback.ts";
import type {
  Attempt,
  ChannelName,
  EndReason,
  FinalStatus,
  JobRecord,
  JobStatus,
  KeptContent,
  QueuedJob,
  StoredPayload,
} from "../../domain/jobs/job.ts";
import { END_REASONS, isFinal } from "../../domain/jobs/job.ts";
import type { JobNews, NewJob, TenantQueue } from "../../domain/jobs/queue.ts";
import type { Retry } from "../../domain/jobs/retry.ts";
import { decodeTags } from "../../domain/jobs/tags.ts";
import { limits } from "../../domain/limits.ts";
import { ERASED_NAME } from "../../domain/tenants/suppressions.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import { countExtraBytes, extrasOfStored, type JobExtras, readExtras, withExtras } from "./extras.ts";

/** The queue's representation of a channel. */
export interface QueuedChannel {
  readonly name: ChannelName;
  /** A unique lower-case letter. It is in stored jobs, so it never changes. */
  readonly letter: string;
}

/*
 * How jobs are written in Redis. One letter a word: a record of a queued job is about forty bytes.
 */

/**
 * The letters of the channels that this process supports. Throws if two channels share one, or one is not a letter.
 */
export class ChannelLetters {
  readonly names: readonly ChannelName[];
  private readonly letters: ReadonlyMap<ChannelName, string>;
  private readonly channels: ReadonlyMap<string, ChannelName>;

  constructor(channels: readonly QueuedChannel[]) {
    this.names = channels.map(({ name }) => name);
    this.letters = new Map(channels.map(({ name, letter }) => [name, letter]));
    this.channels = new Map(channels.map(({ name, letter }) => [letter, name]));
    const areLetters = channels.every(({ letter }) => /^[a-z]$/.test(letter));
    if (!areLetters || this.letters.size < channels.length || this.channels.size < channels.length) {
      throw new TypeError("each channel needs a name and a lower-case letter of its own");
    }
  }

  toLetter(channel: ChannelName): string {
    const letter = this.letters.get(channel);
    if (letter === undefined) throw new Error(`unknown channel "${channel}"`);
    return letter;
  }

  toChannel(letter: string): ChannelName {
    const channel = this.channels.get(letter);
    if (channel === undefined) throw new Error(`unknown letter "${letter}" in the queue`);
    return channel;
  }

  knows(letter: string): boolean {
    return this.channels.has(letter);
  }
}

export const STATUS_LETTER = {
  pending: "p",
  running: "r",
  success: "s",
  failed: "f",
  suppressed: "x",
} as const satisfies Record<JobStatus, string>;
export const EVENT_LETTER = {
  sent: "s",
  delivered: "d",
  read: "r",
  opened: "o",
  clicked: "c",
  bounced: "b",
  complained: "m",
  failed: "f",
  suppressed: "x",
} as const satisfies Record<EventType, string>;

const decodeEventLetter = byLetter(EVENT_LETTER);
const decodeStatusLetter = byLetter(STATUS_LETTER);
/** Pending although its entry was pulled: a job that is suppressed or refused before its delivery was never running. */
export const HELD_PENDING = "q";
const SCREENING = "q";
/** Begins the line of a report that waits for the job's end: it is published only then. */
const KEPT = "!";
/** Begins the line of a job's result. */
const RESULT = "=";
/** Replaces an entry's id: the job waits for the time (unix ms) behind it. */
const LATER = "~";
/** Replaces a suppression's reason: according to a report, the provider has the message. */
const REPORTED = "!";

/**
 * Fields of a tenant's index of suppressions beside those of recipients: the key of its erased recipients, who are under
 * their keyed hashes behind this prefix; the number of erased jobs, which are under their ids behind that one.
 */
const ERASED_JOB = "job:";

/** An entry begins with the job's id and a space, then come the channel's letter and the count of its attempts. */
const JOB_ID_CHARS = 36;
const CHANNEL_AT = JOB_ID_CHARS + 1;
const COUNT_AT = CHANNEL_AT + 1;

/** The same format for the scripts: local variables of these names, which Lua counts from 1. */
export const FORMAT_IN_LUA = {
  STATUS_PENDING: STATUS_LETTER.pending,
  STATUS_HELD_PENDING: HELD_PENDING,
  STATUS_RUNNING: STATUS_LETTER.running,
  STATUS_SUCCESS: STATUS_LETTER.success,
  STATUS_FAILED: STATUS_LETTER.failed,
  STATUS_SUPPRESSED: STATUS_LETTER.suppressed,
  STATUSES: Object.values(STATUS_LETTER).join("") + HELD_PENDING,
  EVENT_SENT: EVENT_LETTER.sent,
  EVENT_CLICKED: EVENT_LETTER.clicked,
  EVENT_OPENED: EVENT_LETTER.opened,
  EVENT_SUPPRESSED: EVENT_LETTER.suppressed,
  EVENT_EPOCH_MS,
  EVENT_IDS_PER_MS,
  JOB_ID_CHARS,
  CHANNEL_AT: CHANNEL_AT + 1,
  COUNT_AT: COUNT_AT + 1,
  SCREENING,
  KEPT,
  RESULT,
  REPORTED,
  ERASED_NAME,
  ERASED_JOB,
  LATER,
  ERASED: "erased" satisfies EndReason,
  REASON_CANCELED: "canceled" satisfies EndReason,
  TRIES_MAX: limits.attemptsKeptMax,
  CLOCKS_APART_MS: limits.clocksApartMs,
} as const;

/** Encodes a result as JSON text, or "" for the empty object, which most results are. */
export function encodeResult(result: JsonObject): string {
  const text = JSON.stringify(result);
  return text === "{}" ? "" : text;
}

function decodeResult(text: string): JsonObject {
  if (text === "") return {};
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) throw new Error("a stored result is not an object");
  return value;
}

/** Encodes the record's text, as described in `prelude.lua`. */
export function encodeRecord(letters: ChannelLetters, record: JobRecord): string {
  const { began, tries = [] } = record;
  const state = `${letters.toLetter(record.channel)}${STATUS_LETTER[record.status]}`;
  const life = began === undefined ? "" : `@${began}:0`;
  const place =
    tries.length > 0 ? ` ${life} ${tries.map((one) => JSON.stringify(one)).join("\t")}` : life && ` ${life}`;
  const head = `${record.tenantId} ${state}${record.attempts}${place}`;
  const lines = record.events.map((event) => {
    const result = encodeResult(event.result);
    return `${EVENT_LETTER[event.type]}${event.eventId}${result === "" ? "" : ` ${result}`}`;
  });
  const result = record.result === null ? "" : encodeResult(record.result);
  return [head, ...lines, ...(result === "" ? [] : [`${RESULT}${result}`])].join("\n");
}

/** `getCursor` returns the last entry that was pulled from the tenant's queue of a channel, "" for none. */
export function decodeRecord(
  letters: ChannelLetters,
  jobId: string,
  text: string,
  getCursor: (channel: ChannelName) => string,
): JobRecord {
  const [head = "", ...lines] = text.split("\n");
  const [tenantId = "", state = "", place = "", ...rest] = head.split(" ");
  const [entryId = "", life] = place.split("@");
  const tries = decodeTries(rest.join(" "));
  const events: DeliveryEvent[] = [];
  let result: JsonObject | null = null;
  for (const line of lines) {
    if (line.startsWith(RESULT)) result = decodeResult(line.slice(1));
    else if (!line.startsWith(KEPT)) events.push(decodeEvent(line));
  }
  const channel = letters.toChannel(state.charAt(0));
  const status = decodeStatus(state.charAt(1), entryId, getCursor(channel));
  return {
    jobId,
    tenantId,
    channel,
    status,
    attempts: Number.parseInt(state.slice(2), 10),
    result: isFinal(status) ? (result ?? {}) : null,
    events,
    ...(entryId.startsWith(LATER) && { dueMs: Number(entryId.slice(1)) }),
    ...(tries.length > 0 && { tries }),
    ...(life !== undefined && { began: Number.parseInt(life, 10) }),
  };
}

function decodeTries(text: string): readonly Attempt[] {
  // Written by settle.lua, from the output of `encodeSettlement`.
  return text === "" ? [] : text.split("\t").map((one) => JSON.parse(one) as Attempt);
}

function decodeStatus(letter: string, entryId: string, cursor: string): JobStatus {
  if (letter === HELD_PENDING) return "pending";
  const status = decodeStatusLetter(letter);
  if (entryId.startsWith(LATER)) return status;
  return status === "pending" && cursor !== "" && compareEntryIds(entryId, cursor) <= 0 ? "running" : status;
}

function decodeEvent(line: string): DeliveryEvent {
  const space = line.indexOf(" ");
  const end = space === -1 ? line.length : space;
  return {
    eventId: Number(line.slice(1, end)),
    type: decodeEventLetter(line.charAt(0)),
    result: space === -1 ? {} : withoutTime(decodeResult(line.slice(space + 1))).result,
  };
}

/** Stream ids are `<ms>-<sequence>`, ordered by number. */
function compareEntryIds(a: string, b: string): number {
  const [aMs = "0", aSeq = "0"] = a.split("-");
  const [bMs = "0", bSeq = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aSeq) - Number(bSeq);
}

/** Encodes a tenant queue's name: "<tenant>/<channel>". */
export function encodeTenantQueue(letters: ChannelLetters, { tenantId, channel }: TenantQueue): string {
  return `${tenantId}/${letters.toLetter(channel)}`;
}

/**
 * Decodes the tenant queues of known channels: the jobs of other channels, from a newer release for example, wait for a
 * process that supports them.
 */
export function decodeTenantQueues(letters: ChannelLetters, tenantQueues: readonly string[]): TenantQueue[] {
  return tenantQueues
    .filter((tenantQueue) => letters.knows(tenantQueue.slice(-1)))
    .map((tenantQueue) => ({ tenantId: tenantQueue.slice(0, -2), channel: letters.toChannel(tenantQueue.slice(-1)) }));
}

/** Encodes the queue entry of a new job. */
export function encodeEntry(letters: ChannelLetters, job: NewJob): string {
  const { jobId, channel, recipient, needsScreening, template, stored } = job;
  const payload = withExtras(job.payload, job);
  const head = `${jobId} ${letters.toLetter(channel)}0${needsScreening ? SCREENING : ""} ${recipient}`;
  if (template === undefined && stored === undefined) return `${head}\n${payload}`;
  const named = `\t${template === undefined ? "" : JSON.stringify(template)}`;
  if (stored === undefined) return `${head}${named}\n${payload}`;
  return `${head}${named}\t${stored.sha256} ${stored.bytes}${extrasOfStored(job)}\n${payload}`;
}

/** Encodes a job's queue entry for accept.lua, with the time at which it is to be sent, or its waiting time. */
export function encodeTimed(entry: string, job: Pick<NewJob, "dueMs" | "fallback">, nowMs: number): string {
  const { dueMs } = job;
  if (dueMs === undefined) return entry;
  const waitMs = Math.ceil(dueMs - nowMs);
  if (!countsFromMessage(job)) return `${LATER}${Math.round(dueMs)} ${Math.floor(nowMs)} ${entry}`;
  return waitMs > 0 ? `${LATER}${Math.round(dueMs)} -${waitMs} ${entry}` : entry;
}

/** Returns the bytes of a job's payload that count in its tenant's share, as `payload_bytes` counts its entry. */
export function countPayloadBytes(job: Pick<KeptContent, "payload" | "stored" | keyof JobExtras>): number {
  return job.stored === undefined ? Buffer.byteLength(job.payload) + countExtraBytes(job) : job.stored.bytes;
}

/** Encodes the queue entry of a job that is retried; the script writes its count. */
export function encodeRetried(letters: ChannelLetters, { job: { jobId, channel }, content }: Retry): string {
  return encodeEntry(letters, { ...content, jobId, channel, idempotency: null });
}

/** Decodes the content of a failed job from its entry at the job's end. */
export function decodeKept(letters: ChannelLetters, entry: string): KeptContent {
  const job = decodeEntry({ letters, tenantId: "" }, "", entry, "");
  const { recipient, needsScreening, template, payload, stored, traceparent, attempts, waits = 0 } = job;
  const { tags, topic, dueMs, fallback } = job;
  return {
    recipient,
    ...(needsScreening && { needsScreening }),
    ...(template !== undefined && { template }),
    payload,
    ...(stored !== undefined && { stored }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tags !== undefined && { tags }),
    ...(topic !== undefined && { topic }),
    ...(dueMs !== undefined && { dueMs }),
    ...(fallback !== undefined && { fallback }),
    settlements: attempts + waits,
  };
}

/**
 * `entry` is `<job id> <channel><attempts>[+<waits>][q] <recipient>[\t<template>[\t<sha256> <bytes>]]\n<payload>`: the
 * "q" if the job still has to be screened, the template as JSON text, "" for none, and the digest and size of a payload
 * that is stored elsewhere; `extras.ts` describes the beginning of the payload, or the text after the size. `mark` is
 * the reason for which its recipient is suppressed (behind a blank the topic, if it is for that alone), "!" if the job
 * is reported, or "", and of a job that was retried `@<unix ms>` behind it.
 */
export function decodeEntry(
  { letters, tenantId }: { readonly letters: ChannelLetters; readonly tenantId: string },
  entryId: string,
  entry: string,
  mark: string,
): QueuedJob {
  const end = entry.indexOf("\n");
  const space = entry.indexOf(" ", COUNT_AT);
  const plus = entry.slice(COUNT_AT, space).indexOf("+");
  const [recipient = "", template = "", stored, ...more] = entry.slice(space + 1, end).split("\t");
  const [reason = "", retriedAt] = mark.split("@");
  return {
    jobId: entry.slice(0, JOB_ID_CHARS),
    tenantId,
    channel: letters.toChannel(entry.charAt(CHANNEL_AT)),
    entryId,
    attempts: Number.parseInt(entry.slice(COUNT_AT, space), 10),
    ...(plus !== -1 && { waits: Number.parseInt(entry.slice(COUNT_AT + plus + 1, space), 10) }),
    recipient,
    ...decodeNews(reason),
    ...(retriedAt !== undefined && { retriedAtMs: Number(retriedAt) }),
    ...(entry.charAt(space - 1) === SCREENING && { needsScreening: true }),
    ...(template !== "" && { template: decodeTemplate(template) }),
    ...readExtras(entry.slice(end + 1), more),
    ...(stored !== undefined && { stored: decodeStored(stored) }),
  };
}

/**
 * Decodes the reason for which a job's recipient is suppressed ("" none), behind a blank the topic that it is for, or
 * REPORTED.
 */
export function decodeNews(said: string): JobNews {
  if (said === REPORTED) return { suppressed: null, isReported: true };
  if (said === "") return { suppressed: null };
  const blank = said.indexOf(" ");
  if (blank === -1) return { suppressed: suppressionReason(said) };
  return { suppressed: suppressionReason(said.slice(0, blank)), suppressedTopic: said.slice(blank + 1) };
}

/** Decodes JSON text, which is the name itself in quotes unless it contains escapes. */
function decodeTemplate(text: string): string {
  return text.includes("\\") ? String(JSON.parse(text)) : text.slice(1, -1);
}

function decodeStored(text: string): StoredPayload {
  const [sha256 = "", bytes = ""] = text.split(" ");
  return { sha256, bytes: Number(bytes) };
}

export function suppressionReason(text: string): EndReason {
  return END_REASONS.find((reason) => reason === text) ?? "manual";
}

/**
 * A line of the outbox: `[tenant, job, channel, event id, type, result]`; if the event ended the job, also the job's
 * status, attempts, result, template (null: none), recipient, tries and rare members, the last ones only if needed. A
 * former release reads the members that it supports.
 */
type OutboxLine = [string, string, string, number, string, JsonObject, string?, number?, JsonObject?, ...Ending];
type Ending = [(string | null)?, string?, (readonly Attempt[])?, RowRest?];
interface RowRest {
  readonly began?: number;
  /** The entry of a failed job. */
  readonly kept?: string;
  /** As written by `encodeTags`. */
  readonly tags?: string;
}

export function decodeRow(letters: ChannelLetters, line: string): StoredEventRow {
  // Written by settle.lua and observe.lua in exactly this form.
  const fields = JSON.parse(line) as OutboxLine;
  const [tenantId, jobId, channel, eventId, type, result, status, attempts = 0, jobResult = {}, ...ending] = fields;
  const [template = null, recipient = "", tries = [], { began, kept, tags } = {}] = ending;
  return {
    tenantId,
    jobId,
    channel: letters.toChannel(channel),
    eventId,
    type: decodeEventLetter(type),
    ...withoutTime(result),
    finished:
      status === undefined
        ? null
        : {
            status: finalStatus(status),
            attempts,
            result: jobResult,
            ...(template !== null && { template }),
            ...(recipient !== "" && { recipient }),
            ...(tries.length > 0 && { tries }),
            ...(began !== undefined && { began }),
            ...(kept !== undefined && { kept: decodeKept(letters, kept) }),
            ...(tags !== undefined && { tags: decodeTags(tags) }),
          },
  };
}

function finalStatus(letter: string): FinalStatus {
  const status = decodeStatusLetter(letter);
  if (!isFinal(status)) throw new Error(`the outbox names a job that ended as ${status}`);
  return status;
}

function byLetter<K extends string>(letters: Readonly<Record<K, string>>): (letter: string) => K {
  // The keys of a literal table are exactly its type's.
  const words = new Map((Object.keys(letters) as K[]).map((word) => [letters[word], word]));
  return (letter) => {
    const word = words.get(letter);
    if (word === undefined) throw new Error(`unknown letter "${letter}" in the queue`);
    return word;
  };
}
