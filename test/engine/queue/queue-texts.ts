import { CHANNELS } from "../../../src/app/channels.ts";
import type { StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import type { Attempt } from "../../../src/domain/jobs/job.ts";
import { ChannelLetters, EVENT_LETTER, encodeResult, STATUS_LETTER } from "../../../src/engine/queue/codec.ts";
import { jobBucket, jobField } from "../../../src/engine/queue/keys.ts";
import { groupText, groupToken } from "../../simulation/memory-queue-record.ts";
import {
  alive,
  countText,
  endingOf,
  entryText,
  type ShardState,
  type StoredJob,
  tenantQueueOf,
} from "../../simulation/memory-queue-shard.ts";
import type { QueueSnapshot } from "../../simulation/memory-queue-state.ts";
import type { DumpedKey } from "./timed-redis.ts";

const letters = new ChannelLetters(CHANNELS);

/**
 * What Redis must hold where the queue in memory holds this, key by key, as `prelude.lua` describes it. Rate windows
 * are left out: the two count in their own ways, and are compared by what they answer.
 */
export function queueTexts({ shards, members }: QueueSnapshot, nowMs: number): Record<string, DumpedKey> {
  const keys = new Map<string, DumpedKey>();
  for (const [number, shard] of shards) {
    const prefix = `wb:{s${String(number).padStart(2, "0")}}`;
    for (const [name, key] of shardTexts(shard, nowMs)) keys.set(`${prefix}:${name}`, key);
  }
  for (const [role, beats] of members) {
    const texts = [...beats].map(([owner, count]) => [owner, String(count)] as const);
    for (const [name, key] of hash(`${role}:beats`, texts)) keys.set(`wb:{members}:${name}`, key);
  }
  return inOrder(keys);
}

/**
 * The same of a dump: a job's events, its reports that wait and its result are put in this order, and what is not compared
 * is left out: references are compared by what they find.
 */
export function comparableDump(dump: ReadonlyMap<string, DumpedKey>): Record<string, DumpedKey> {
  const keys = new Map<string, DumpedKey>();
  for (const [key, { value, expiresMs }] of dump) {
    if (/\}:(rate|repeated):|\{ref/.test(key) || (Array.isArray(value) && value.length === 0)) continue;
    if (!key.endsWith("}:tenants")) {
      keys.set(key, { value: /\}:jobs:/.test(key) ? recordsInOrder(value) : value, expiresMs });
      continue;
    }
    const loads = loadsOf(value);
    if (Object.keys(loads).length > 0) keys.set(key, { value: loads, expiresMs });
  }
  return inOrder(keys);
}

/** Tenants' unfinished jobs and bytes, without their rate windows and those that have none; "": the last entry, if any. */
function loadsOf(tenants: unknown): Record<string, string> {
  const entries = Object.entries(tenants as Record<string, string>).map(([tenantId, text]) => {
    return [tenantId, text.split(" ").slice(0, 2).join(" ")] as const;
  });
  return Object.fromEntries(entries.filter(([, load]) => load !== "0 0" && load !== "0"));
}

/** So that a difference is easy to read. */
function inOrder(keys: Map<string, DumpedKey>): Record<string, DumpedKey> {
  return Object.fromEntries([...keys].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function recordsInOrder(records: unknown): unknown {
  // The dump gives a hash as an object of texts.
  const entries = Object.entries(records as Record<string, string>).map(([field, text]) => {
    const lines = text.split("\n");
    const placeOf = (line: string) => (line.startsWith("=") ? 2 : line.startsWith("!") ? 1 : 0);
    return [field, lines.toSorted((a, b) => placeOf(a) - placeOf(b)).join("\n")];
  });
  return Object.fromEntries(entries);
}

function* shardTexts(shard: ShardState, nowMs: number): Generator<[string, DumpedKey]> {
  for (const [tenantQueue, { entries }] of shard.tenantQueues) {
    yield [
      `box:${storedName(tenantQueue)}`,
      lasting([...entries].map(([id, entry]) => [id, ["p", entryText(entry, letters.toLetter(entry.channel))]])),
    ];
  }
  yield* nonEmpty("ready", [...shard.ready].map(storedName).toSorted());
  yield* nonEmpty("held", [...shard.held].map(storedName).toSorted());
  yield* hash(
    "cursor",
    [...shard.cursors].map(([tenantQueue, id]) => [storedName(tenantQueue), id]),
  );
  const later = [...shard.later].toSorted(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1));
  yield* nonEmpty(
    "later",
    later.flatMap(([jobId, dueMs]) => [jobId, String(dueMs)]),
  );
  yield* hash(
    "parked",
    [...shard.parked].map(([jobId, { tenantQueue, entry, lentUnder }]) => {
      const mark = lentUnder === undefined ? "" : `!${lentUnder}`;
      return [jobId, `${storedName(tenantQueue)}${mark} ${entryText(entry, letters.toLetter(entry.channel))}`];
    }),
  );
  yield* hash(
    "loans",
    [...shard.parked].flatMap(([jobId, { lentForMs }]) =>
      lentForMs === undefined ? [] : [[jobId, String(lentForMs)]],
    ),
  );
  if (shard.agreedMs !== null) yield ["skew", lasting(`${shard.skewMs} ${shard.agreedMs}`)];
  const estimated = alive(shard.estimatedSkew ?? undefined, nowMs);
  if (estimated !== null) yield ["estimated-skew", { value: String(estimated.value), expiresMs: estimated.expiresMs }];
  const ahead = alive(shard.clocksAhead ?? undefined, nowMs);
  if (ahead !== null) {
    yield ["clocks-ahead", { value: `${ahead.value.sinceMs} ${ahead.value.lastMs}`, expiresMs: ahead.expiresMs }];
  }
  yield* loadTexts(shard);
  const keeping = [...shard.keeping].map(([tenantId, bytes]) => [tenantId, String(bytes)] as const);
  const all = [...shard.keeping.values()].reduce((sum, bytes) => sum + bytes, 0);
  yield* hash("keeping", keeping.length === 0 ? [] : [["", String(all)], ...keeping]);
  for (const [tenantId, stored] of shard.kept) {
    const kept = alive(stored, nowMs);
    if (kept !== null) yield [`kept:${tenantId}`, { value: String(kept.value), expiresMs: kept.expiresMs }];
  }
  yield* bucketTexts(shard);
  yield* outboxTexts(shard);
  yield* leaseTexts(shard);
  for (const [tenantId, list] of shard.suppressed) yield* hash(`suppressed:${tenantId}`, [...list]);
  for (const [name, stored] of shard.allowances) {
    const taken = alive(stored, nowMs);
    const [tenantQueue = "", day = ""] = name.split(":");
    if (taken !== null)
      yield [`allowance:${storedName(tenantQueue)}:${day}`, { value: String(taken.value), expiresMs: taken.expiresMs }];
  }
  for (const [tenantId, stored] of shard.claims) {
    const known = alive(stored, nowMs);
    if (known === null) continue;
    const bytes = Object.fromEntries([...known.value].map(([hour, sum]) => [String(hour), String(sum)]));
    yield [`claims:${tenantId}`, { value: bytes, expiresMs: known.expiresMs }];
  }
  for (const [name, stored] of shard.idempotency) {
    const known = alive(stored, nowMs);
    if (known === null) continue;
    yield [`idem:${name}`, { value: `${known.value.jobId} ${known.value.fingerprint}`, expiresMs: known.expiresMs }];
  }
}

function* loadTexts({ load, lastEntry }: ShardState): Generator<[string, DumpedKey]> {
  const loads = [...load].map(([tenantId, { jobs, bytes }]) => [tenantId, `${jobs} ${bytes}`] as const);
  yield* hash("tenants", lastEntry === 0 ? loads : [["", String(lastEntry)], ...loads]);
}

function* outboxTexts({
  outbox,
  mark,
  lastEventId,
  lastRecorded,
  leaving,
}: ShardState): Generator<[string, DumpedKey]> {
  const entries = [...outbox.entries].map(([id, { rows }]) => [
    id,
    ["c", String(rows.length), "r", rows.map(rowText).join("\n")],
  ]);
  if (entries.length > 0) yield ["outbox", lasting(entries)];
  if (mark !== null) {
    const group = mark.group === null ? "" : ` ${groupToken(mark.group)}\n${groupText(mark.group)}`;
    yield ["mark", lasting(`${mark.first} ${mark.last}${group}`)];
  }
  if (lastEventId > 0) yield ["clock", lasting(String(lastEventId))];
  if (lastRecorded > 0) yield ["recorded", lasting(String(lastRecorded))];
  yield* nonEmpty(
    "leaving",
    leaving.map(({ sinceMs, jobs }) => [sinceMs, ...jobs].join(" ")),
  );
}

function* leaseTexts({ leases, epoch }: ShardState): Generator<[string, DumpedKey]> {
  for (const [role, { token, renewals }] of leases) {
    yield [`lease:${role}`, lasting({ owner: "test", token, renewals: String(renewals) })];
  }
  if (epoch > 0) yield ["epoch", lasting(String(epoch))];
}

function* nonEmpty(name: string, items: readonly string[]): Generator<[string, DumpedKey]> {
  if (items.length > 0) yield [name, lasting(items)];
}

function* hash(name: string, pairs: readonly (readonly [string, string])[]): Generator<[string, DumpedKey]> {
  if (pairs.length > 0) yield [name, lasting(Object.fromEntries(pairs))];
}

function lasting(value: unknown): DumpedKey {
  return { value, expiresMs: null };
}

function storedName(tenantQueue: string): string {
  const { tenantId, channel } = tenantQueueOf(tenantQueue);
  return `${tenantId}/${letters.toLetter(channel)}`;
}

function* bucketTexts({ jobs }: ShardState): Generator<[string, DumpedKey]> {
  const buckets = Map.groupBy(jobs, ([jobId]) => jobBucket(jobId));
  for (const [bucket, records] of buckets) {
    yield* hash(
      `jobs:${bucket}`,
      records.map(([jobId, job]) => [jobField(jobId), recordText(job)]),
    );
  }
}

function recordText({
  tenantId,
  channel,
  status,
  isHeldPending,
  entryId,
  events,
  kept,
  result,
  tries = [],
  life,
  ...count
}: StoredJob): string {
  const letter = isHeldPending ? "q" : STATUS_LETTER[status];
  const head = `${tenantId} ${letters.toLetter(channel)}${letter}${recordCount(count)}${placeText(`${entryId ?? ""}${life === undefined ? "" : `@${life.began}:${life.atMs}`}`, tries)}`;
  const lines = events.map((event) => `${EVENT_LETTER[event.type]}${event.eventId} ${encodeResult(event.result)}`);
  const waiting = kept.map((report) => `!${EVENT_LETTER[report.type]} ${encodeResult(report.result)}`);
  const ending = result === null ? "" : encodeResult(result);
  return [head, ...[...lines, ...waiting].map((line) => line.trimEnd()), ...(ending === "" ? [] : [`=${ending}`])].join(
    "\n",
  );
}

function placeText(place: string, tries: readonly Attempt[]): string {
  if (tries.length > 0) return ` ${place} ${tries.map((one) => JSON.stringify(one)).join("\t")}`;
  return place === "" ? "" : ` ${place}`;
}

function rowText({ tenantId, jobId, channel, eventId, type, result, finished }: StoredEventRow): string {
  const ending =
    finished === null
      ? []
      : [
          STATUS_LETTER[finished.status],
          finished.attempts,
          finished.result,
          ...endingOf({ jobId, channel: letters.toLetter(channel) }, finished),
        ];
  return JSON.stringify([tenantId, jobId, letters.toLetter(channel), eventId, EVENT_LETTER[type], result, ...ending]);
}

/** A record leaves out waits of which there were none. */
function recordCount({ attempts, waits }: { readonly attempts: number; readonly waits: number }): string {
  return countText(waits === 0 ? { attempts } : { attempts, waits });
}
