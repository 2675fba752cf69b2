import { FENCED, type Fenced, type Lease, type PullRequest, type PullResult } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import { decodeBox, decodeEntry, encodeBox } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import pullLua from "./pull.lua" with { type: "text" };
import { Script, type ScriptArgument } from "./script.ts";

const script = new Script(pullLua, "run");

/** more, ms until the next retry, ready boxes, and a flat list a box: more, then entry id, entry, suppression. */
type PullReply = [number, number, string[], [number, ...string[]][]];

/** The second verb: the owner's next jobs. */
export async function pull(
  connection: RedisConnection,
  lease: Lease,
  request: PullRequest,
): Promise<PullResult | Fenced> {
  const args: ScriptArgument[] = [
    lease.token,
    request.survey ? 1 : 0,
    limits.pullDueMax,
    limits.pullReadyMax,
    limits.pullBytesPerBoxMax,
  ];
  for (const { box, after, entriesMax } of request.boxes) args.push(encodeBox(box), after ?? "", entriesMax);
  // The script answers in this form, or null when it is fenced.
  const reply = (await script.run(connection, [shardPrefix(lease.shard)], args)) as PullReply | null;
  if (reply === null) return FENCED;
  const [more, nextDueMs, ready, boxes] = reply;
  return {
    more: more === 1,
    nextDueMs: nextDueMs === -1 ? null : nextDueMs,
    ready: ready.map(decodeBox),
    boxes: request.boxes.map(({ box }, i) => {
      const [boxMore = 0, ...cells] = boxes[i] ?? [0];
      const jobs = [];
      for (let at = 0; at + 2 < cells.length; at += 3) {
        jobs.push(decodeEntry(box.tenantId, cells[at] ?? "", cells[at + 1] ?? "", cells[at + 2] ?? ""));
      }
      return { box, jobs, more: boxMore === 1 };
    }),
  };
}
