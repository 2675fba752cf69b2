import type { LedgerRow } from "../../src/core/ledger.ts";
import { CHANNEL_LETTER, EVENT_LETTER, encodeResult, STATUS_LETTER } from "../../src/journal/codec.ts";
import {
  alive,
  type Bucket,
  countText,
  entryText,
  mailboxOf,
  type ShardState,
  type StoredJob,
  templateOf,
} from "../simulation/memory-journal-shard.ts";
import type { JournalSnapshot } from "../simulation/memory-journal-state.ts";
import type { DumpedKey } from "./timed-redis.ts";

/**
 * What Redis must hold where the journal in memory holds this, key by key, as `prelude.lua` describes it. Rate windows
 * are left out: the two count in their own ways, and are compared by what they answer.
 */
export function journalTexts({ shards, members }: JournalSnapshot, nowMs: number): Record<string, DumpedKey> {
  const keys = new Map<string, DumpedKey>();
  for (const [number, shard] of shards) {
    const prefix = `wb:{s${String(number).padStart(2, "0")}}`;
    for (const [name, key] of shardTexts(shard, nowMs)) keys.set(`${prefix}:${name}`, key);
  }
  for (const [role, living] of members) {
    const byEnd = [...living].toSorted(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1));
    if (byEnd.length > 0)
      keys.set(`wb:{members}:${role}`, lasting(byEnd.flatMap(([owner, ms]) => [owner, String(ms)])));
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
    if (/\}:rate(:|$)|\{ref/.test(key) || (Array.isArray(value) && value.length === 0)) continue;
    keys.set(key, { value: /\}:jobs:/.test(key) ? recordsInOrder(value) : value, expiresMs });
  }
  return inOrder(keys);
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
  for (const [box, { entries }] of shard.boxes) {
    yield [
      `box:${boxName(box)}`,
      lasting([...entries].map(([id, entry]) => [id, ["p", entryText(entry, CHANNEL_LETTER[entry.channel])]])),
    ];
  }
  yield* nonEmpty("ready", [...shard.ready].map(boxName).toSorted());
  yield* nonEmpty("held", [...shard.held].map(boxName).toSorted());
  yield* hash(
    "cursor",
    [...shard.cursors].map(([box, id]) => [boxName(box), id]),
  );
  const later = [...shard.later].toSorted(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1));
  yield* nonEmpty(
    "later",
    later.flatMap(([jobId, dueMs]) => [jobId, String(dueMs)]),
  );
  yield* hash(
    "parked",
    [...shard.parked].map(([jobId, { box, entry }]) => [
      jobId,
      `${boxName(box)} ${entryText(entry, CHANNEL_LETTER[entry.channel])}`,
    ]),
  );
  for (const [name, stored] of shard.buckets) {
    const bucket = alive(stored, nowMs);
    if (bucket !== null) yield [`jobs:${name}`, { value: bucketTexts(bucket), expiresMs: bucket.expiresMs }];
  }
  for (const [jobId, stored] of shard.failed) {
    const failed = alive(stored, nowMs);
    if (failed === null) continue;
    const { value, expiresMs } = failed;
    yield [`failed:${jobId}`, { value: entryText(value, CHANNEL_LETTER[value.channel]), expiresMs }];
  }
  yield* outboxTexts(shard);
  yield* leaseTexts(shard, nowMs);
  for (const [tenantId, list] of shard.suppressed) yield* hash(`suppressed:${tenantId}`, [...list]);
  for (const [name, stored] of shard.allowances) {
    const taken = alive(stored, nowMs);
    const [box = "", day = ""] = name.split(":");
    if (taken !== null)
      yield [`allowance:${boxName(box)}:${day}`, { value: String(taken.value), expiresMs: taken.expiresMs }];
  }
  for (const [jobId, stored] of shard.repeated) {
    const repeated = alive(stored, nowMs);
    if (repeated !== null) yield [`repeated:${jobId}`, { value: "1", expiresMs: repeated.expiresMs }];
  }
  for (const [name, stored] of shard.idempotency) {
    const known = alive(stored, nowMs);
    if (known === null) continue;
    yield [`idem:${name}`, { value: `${known.value.jobId} ${known.value.fingerprint}`, expiresMs: known.expiresMs }];
  }
}

function* outboxTexts({ outbox, mark, lastEventId, closing }: ShardState): Generator<[string, DumpedKey]> {
  const entries = [...outbox.entries].map(([id, { rows }]) => [
    id,
    ["c", String(rows.length), "r", rows.map(rowText).join("\n")],
  ]);
  if (entries.length > 0) yield ["outbox", lasting(entries)];
  if (mark !== null) yield ["mark", lasting(`${mark.first} ${mark.last}`)];
  if (lastEventId > 0) yield ["clock", lasting(String(lastEventId))];
  yield* nonEmpty("closing", closing);
}

function* leaseTexts({ leases, epoch }: ShardState, nowMs: number): Generator<[string, DumpedKey]> {
  for (const [role, stored] of leases) {
    const lease = alive(stored, nowMs);
    if (lease === null) continue;
    yield [`lease:${role}`, { value: { owner: "test", token: lease.value }, expiresMs: lease.expiresMs }];
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

function boxName(box: string): string {
  const { tenantId, channel } = mailboxOf(box);
  return `${tenantId}/${CHANNEL_LETTER[channel]}`;
}

function bucketTexts({ jobs, recorded }: Bucket): Record<string, string> {
  const records = [...jobs].map(([jobId, job]) => [jobId.slice(12), recordText(job)]);
  return Object.fromEntries(recorded === null ? records : [...records, ["r", String(recorded)]]);
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
  ...count
}: StoredJob): string {
  const letter = isHeldPending ? "q" : STATUS_LETTER[status];
  const head = `${tenantId} ${CHANNEL_LETTER[channel]}${letter}${countText(count)}${entryId === null ? "" : ` ${entryId}`}`;
  const lines = events.map((event) => `${EVENT_LETTER[event.type]}${event.eventId} ${encodeResult(event.result)}`);
  const waiting = kept.map((report) => `!${EVENT_LETTER[report.type]} ${encodeResult(report.result)}`);
  const ending = result === null ? "" : encodeResult(result);
  return [head, ...[...lines, ...waiting].map((line) => line.trimEnd()), ...(ending === "" ? [] : [`=${ending}`])].join(
    "\n",
  );
}

function rowText({ tenantId, jobId, channel, eventId, type, result, finished }: LedgerRow): string {
  const ending =
    finished === null
      ? []
      : [STATUS_LETTER[finished.status], finished.attempts, finished.result, ...templateOf(finished)];
  return JSON.stringify([tenantId, jobId, CHANNEL_LETTER[channel], eventId, EVENT_LETTER[type], result, ...ending]);
}
