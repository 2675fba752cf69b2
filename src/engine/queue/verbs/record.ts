import type { StoredEventRow } from "../../../domain/jobs/event-store.ts";
import type { RecordAnswer, RecordBatch, RecordPiece, RecordTurn } from "../../../domain/jobs/queue.ts";
import { engineLimits } from "../../limits.ts";
import { type ChannelLetters, countPayloadBytes, decodeRow } from "../codec.ts";
import type { RedisConnection } from "../connection.ts";
import { shardOfPrefix, shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import type { Quarantine, Unreadable } from "./quarantine.ts";
import recordLua from "./record.lua" with { type: "text" };

/** The state of a batch when a call hands it out. */
const STATE = { FROZEN: 0, FOUND: 1, RECORDED: 2 } as const;
const STATES = ["frozen", "found", "recorded"] as const;

const script = new Script(recordLua, "run", { ...STATE, TOGETHER_MAX: engineLimits.leaveTogetherMax });

/** A shard's prefix, first and last entry, and the rows of each entry, one line per row. */
type PieceReply = [string, string, string, string[]];
/** Its group ("" none), its state, and its pieces. */
type BatchReply = [string, (typeof STATE)[keyof typeof STATE], PieceReply[]];
/** Fenced prefixes, batches, prefixes with more, and the quarantined data: prefix, kind and location alternately. */
type RecordReply = [string[], BatchReply[], string[], string[]];

/** The fifth verb: fetches the outboxes' next batch, and ends the one before. */
export class RecordCalls {
  /** Rows already in quarantine, by shard: a piece that is handed out again contains them again. */
  private readonly unreadable = new Map<number, Set<string>>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly quarantine: Quarantine,
    private readonly letters: ChannelLetters,
  ) {}

  async record(turns: readonly RecordTurn[]): Promise<RecordAnswer> {
    const keys = turns.map(({ lease }) => shardPrefix(lease.shard));
    // The script answers in this form.
    const reply = (await script.run(this.connection, keys, encodeCall(turns))) as RecordReply;
    const [fenced, replies, more, said] = reply;
    for (let at = 0; at + 2 < said.length; at += 3) {
      this.quarantine.tell(shardOfPrefix(said[at] ?? ""), said.slice(at + 1, at + 3));
    }
    const batches: RecordBatch[] = [];
    for (const one of replies) batches.push(await this.decodeBatch(one));
    return { fenced: fenced.map(shardOfPrefix), batches, more: more.map(shardOfPrefix) };
  }

  private async decodeBatch([group, known, replies]: BatchReply): Promise<RecordBatch> {
    const pieces: RecordPiece[] = [];
    for (const [prefix, first, last, texts] of replies) {
      const shard = shardOfPrefix(prefix);
      const token = `s${shard}:${first}/${last}`;
      const { rows, unreadable } = decodeRows(this.letters, texts, token);
      for (const each of unreadable) await this.putAway(shard, each);
      if (unreadable.length === 0) this.unreadable.delete(shard);
      pieces.push({ shard, token, batch: group === "" ? token : group, rows });
    }
    const isEmpty = pieces.every(({ rows }) => rows.length === 0);
    return { token: pieces[0]?.batch ?? group, pieces, state: isEmpty ? "recorded" : STATES[known] };
  }

  /** Quarantines a row only once. */
  private async putAway(shard: number, row: Unreadable): Promise<void> {
    const known = this.unreadable.get(shard) ?? new Set();
    this.unreadable.set(shard, known);
    const name = `${row.at.join(" ")} ${row.text}`;
    if (known.has(name)) return;
    await this.quarantine.put(shard, row);
    known.add(name);
  }
}

function decodeRows(letters: ChannelLetters, texts: readonly string[], token: string) {
  const rows: StoredEventRow[] = [];
  const unreadable: Unreadable[] = [];
  for (const text of texts) {
    for (const line of text.split("\n")) {
      try {
        rows.push(decodeRow(letters, line));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        unreadable.push({ at: ["row", token], why, text: line });
      }
    }
  }
  return { rows, unreadable };
}

function encodeCall(turns: readonly RecordTurn[]): ScriptArgument[] {
  return [
    engineLimits.recordRowsMax,
    engineLimits.recordEntriesMax,
    engineLimits.recordBytesMax,
    engineLimits.jobKeptMs,
    engineLimits.leaveJobsMin,
    engineLimits.recordPiecesMax,
    ...turns.flatMap(encodeTurn),
  ];
}

function encodeTurn({ lease, takes, refused, done }: RecordTurn): ScriptArgument[] {
  const [, first = "", last = ""] = done === null ? [] : done.token.split(/[:/]/);
  const group = done === null || done.batch === done.token ? "" : done.batch;
  const rows = done?.rows ?? [];
  const texts = endedTogether(rows);
  const lastEvent = rows.reduce((latest, { eventId }) => Math.max(latest, eventId), 0);
  const contents = contentsIn(rows);
  return [lease.token, takes ? 1 : 0, refused ?? "", first, last, group, lastEvent, contents, texts.length, ...texts];
}

/** Returns the bytes of the contents of each tenant's failed jobs. */
function contentsIn(rows: readonly StoredEventRow[]): string {
  const sums = new Map<string, number>();
  for (const { tenantId, finished } of rows) {
    if (finished?.kept === undefined) continue;
    const bytes = countPayloadBytes(finished.kept);
    if (bytes > 0) sums.set(tenantId, (sums.get(tenantId) ?? 0) + bytes);
  }
  return Array.from(sums, ([tenantId, bytes]) => `${tenantId} ${bytes}`).join(" ");
}

/** Returns the jobs that ended, several per text. */
function endedTogether(rows: readonly StoredEventRow[]): string[] {
  const ended = rows.filter(({ finished }) => finished !== null).map(({ jobId }) => jobId);
  const texts = [];
  for (let at = 0; at < ended.length; at += engineLimits.leaveTogetherMax) {
    texts.push(ended.slice(at, at + engineLimits.leaveTogetherMax).join(" "));
  }
  return texts;
}
