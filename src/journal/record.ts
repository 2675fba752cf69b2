import { FENCED, type Fenced, type Lease, type RecordBatch } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import { decodeRow } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { jobBucket, shardPrefix } from "./keys.ts";
import recordLua from "./record.lua" with { type: "text" };
import { Script, type ScriptArgument } from "./script.ts";

const script = new Script(recordLua, "run");

/** first and last entry, more, and the rows of each entry, a line a row. */
type RecordReply = [] | [string, string, number, string[]];

/** The fifth verb: the outbox's next batch, and the end of the one before. */
export async function record(
  connection: RedisConnection,
  lease: Lease,
  done: RecordBatch | null,
): Promise<RecordBatch | null | Fenced> {
  const [, first = "", last = ""] = done === null ? [] : done.token.split(/[:/]/);
  const args: ScriptArgument[] = [
    lease.token,
    limits.recordRowsMax,
    limits.recordEntriesMax,
    limits.recordBytesMax,
    limits.jobKeptMs,
    limits.bucketClosesMs,
    first,
    last,
  ];
  for (const [bucket, count] of rowsByBucket(done)) args.push(bucket, count);
  // The script answers in this form, or null when it is fenced.
  const reply = (await script.run(connection, [shardPrefix(lease.shard)], args)) as RecordReply | null;
  if (reply === null) return FENCED;
  if (reply.length === 0) return null;
  const [from, to, more, texts] = reply;
  return {
    token: `s${lease.shard}:${from}/${to}`,
    rows: texts.flatMap((text) => text.split("\n").map(decodeRow)),
    more: more === 1,
  };
}

function rowsByBucket(batch: RecordBatch | null): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { jobId } of batch?.rows ?? []) {
    const bucket = jobBucket(jobId);
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  }
  return counts;
}
