import type { QueuedJob } from "../core/job.ts";
import { FENCED, type Fenced, type Lease, type Mailbox, type PullRequest, type PullResult } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import { decodeBox, decodeEntry, encodeBox } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import pullLua from "./pull.lua" with { type: "text" };
import type { Quarantine, Unreadable } from "./quarantine.ts";
import { Script, type ScriptArgument } from "./script.ts";

const script = new Script(pullLua, "run");

/** More, ms until the next retry, ready boxes, a flat list a box (more, then entry id, entry, suppression), time, quarantined. */
type PullReply = [number, number, string[], [number, ...string[]][], number, string[]];

/** The second verb: the owner's next jobs. */
export class Puller {
  constructor(
    private readonly connection: RedisConnection,
    private readonly quarantine: Quarantine,
  ) {}

  async pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced> {
    const args = encodeRequest(lease, request);
    // The script answers in this form, or null when it is fenced.
    const reply = (await script.run(this.connection, [shardPrefix(lease.shard)], args)) as PullReply | null;
    if (reply === null) return FENCED;
    const [more, nextDueMs, ready, lists, shardTimeMs, said] = reply;
    this.quarantine.tell(lease.shard, said);
    const boxes = [];
    for (const [i, { box }] of request.boxes.entries()) {
      const [boxMore = 0, ...cells] = lists[i] ?? [0];
      const { jobs, unreadable } = decodeJobs(box, cells);
      for (const each of unreadable) await this.quarantine.put(lease.shard, each);
      boxes.push({ box, jobs, more: boxMore === 1 });
    }
    return {
      more: more === 1,
      nextDueMs: nextDueMs === -1 ? null : nextDueMs,
      ready: ready.map(decodeBox),
      boxes,
      shardTimeMs,
    };
  }
}

/** What a reply holds of a box: entry id, entry and suppression of each job. */
function decodeJobs(box: Mailbox, cells: readonly string[]) {
  const jobs: QueuedJob[] = [];
  const unreadable: Unreadable[] = [];
  for (let at = 0; at + 2 < cells.length; at += 3) {
    const [id = "", text = ""] = [cells[at], cells[at + 1]];
    try {
      jobs.push(decodeEntry(box.tenantId, id, text, cells[at + 2] ?? ""));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      unreadable.push({ at: ["entry", encodeBox(box), id], why, text });
    }
  }
  return { jobs, unreadable };
}

function encodeRequest(lease: Lease, { boxes, survey, shardTimeMs, bytesMax }: PullRequest): ScriptArgument[] {
  const args: ScriptArgument[] = [
    lease.token,
    survey ? 1 : 0,
    shardTimeMs === null ? "" : Math.round(shardTimeMs),
    limits.shardTimeSlackMs,
    limits.pullDueMax,
    limits.pullReadyMax,
    bytesMax,
  ];
  for (const pull of boxes) args.push(encodeBox(pull.box), pull.after ?? "", pull.entriesMax, pull.bytesMax);
  return args;
}
