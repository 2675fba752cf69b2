import { FENCED, type Fenced, type Lease, type RecordBatch } from "../core/journal.ts";
import type { LedgerRow } from "../core/ledger.ts";
import { limits } from "../core/limits.ts";
import { decodeRow } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import type { Quarantine } from "./quarantine.ts";
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
    const rows = [];
    for (const text of texts) {
      for (const line of text.split("\n")) {
        const row = await this.decode(lease.shard, token, line);
        if (row !== null) rows.push(row);
      }
    }
    const batch = { token, rows, more: more === 1 };
    return rows.length === 0 ? this.record(lease, batch) : batch;
  }

  /** Null: the row cannot be read, and is in quarantine. */
  private async decode(shard: number, token: string, line: string): Promise<LedgerRow | null> {
    try {
      return decodeRow(line);
    } catch (error) {
      const name = `${token} ${line}`;
      if (!this.unreadable.has(name)) {
        const why = error instanceof Error ? error.message : String(error);
        await this.quarantine.put(shard, { what: "row", where: token, why, text: line });
        this.unreadable.add(name);
      }
      return null;
    }
  }
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
