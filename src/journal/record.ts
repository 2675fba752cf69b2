import { FENCED, type Fenced, type Lease, type RecordBatch } from "../core/journal.ts";
import type { LedgerRow } from "../core/ledger.ts";
import { limits } from "../core/limits.ts";
import { decodeRow } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import type { Quarantine, Unreadable } from "./quarantine.ts";
import recordLua from "./record.lua" with { type: "text" };
import { Script, type ScriptArgument } from "./script.ts";

const script = new Script(recordLua, "run");

/** First and last entry ("" none), more, the rows of each entry, a line a row, and what was put into quarantine. */
type RecordReply = [string, string, number, string[], string[]];

/** The fifth verb: the outbox's next batch, and the end of the one before. */
export class RecordCalls {
  /** Rows that are in quarantine already: a batch that is handed out again holds them again. */
  private readonly unreadable = new Set<string>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly quarantine: Quarantine,
  ) {}

  async record(lease: Lease, done: RecordBatch | null): Promise<RecordBatch | null | Fenced> {
    // The script answers in this form, or null when it is fenced.
    const args = encodeCall(lease, done);
    const reply = (await script.run(this.connection, [shardPrefix(lease.shard)], args)) as RecordReply | null;
    if (reply === null) return FENCED;
    const [from, to, more, texts, said] = reply;
    this.quarantine.tell(lease.shard, said);
    if (from === "") {
      this.unreadable.clear();
      return null;
    }
    const token = `s${lease.shard}:${from}/${to}`;
    const { rows, unreadable } = decodeRows(texts, token);
    for (const each of unreadable) await this.putAway(lease.shard, each);
    const batch = { token, rows, more: more === 1 };
    return rows.length === 0 ? this.record(lease, batch) : batch;
  }

  /** Once. */
  private async putAway(shard: number, row: Unreadable): Promise<void> {
    const name = `${row.at.join(" ")} ${row.text}`;
    if (this.unreadable.has(name)) return;
    await this.quarantine.put(shard, row);
    this.unreadable.add(name);
  }
}

function decodeRows(texts: readonly string[], token: string) {
  const rows: LedgerRow[] = [];
  const unreadable: Unreadable[] = [];
  for (const text of texts) {
    for (const line of text.split("\n")) {
      try {
        rows.push(decodeRow(line));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        unreadable.push({ at: ["row", token], why, text: line });
      }
    }
  }
  return { rows, unreadable };
}

function encodeCall(lease: Lease, done: RecordBatch | null): ScriptArgument[] {
  const [, first = "", last = ""] = done === null ? [] : done.token.split(/[:/]/);
  const rows = done?.rows ?? [];
  return [
    lease.token,
    limits.recordRowsMax,
    limits.recordEntriesMax,
    limits.recordBytesMax,
    limits.jobKeptMs,
    limits.leaveJobsMin,
    first,
    last,
    rows.reduce((latest, { eventId }) => Math.max(latest, eventId), 0),
    ...endedTogether(rows),
  ];
}

/** The jobs that ended, some to a text. */
function endedTogether(rows: readonly LedgerRow[]): string[] {
  const ended = rows.filter(({ finished }) => finished !== null).map(({ jobId }) => jobId);
  const texts = [];
  for (let at = 0; at < ended.length; at += limits.leaveTogetherMax) {
    texts.push(ended.slice(at, at + limits.leaveTogetherMax).join(" "));
  }
  return texts;
}
