import type { QueuedJob } from "../../../domain/jobs/job.ts";
import {
  FENCED,
  type Fenced,
  type Lease,
  type PullRequest,
  type PullResult,
  type TenantQueue,
} from "../../../domain/jobs/queue.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { engineLimits } from "../../limits.ts";
import { ClockWatch } from "../clock-watch.ts";
import { type ChannelLetters, decodeEntry, decodeTenantQueues, encodeTenantQueue } from "../codec.ts";
import { shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import { type OwnerCallPorts, ShardCalls } from "../shard-calls.ts";
import pullLua from "./pull.lua" with { type: "text" };
import type { Unreadable } from "./quarantine.ts";

const script = new Script(pullLua, "run");

/**
 * More, ms until the next retry, ready tenant queues, one flat list per tenant queue (more, then entry id, entry,
 * suppression), time, quarantined, estimated skew, Redis' time.
 */
type PullReply = [number, number, string[], [number, ...string[]][], number, string[], number | null, number];

interface PullCall {
  readonly lease: Lease;
  readonly request: PullRequest;
}

/** The second verb: fetches the owners' next jobs. One call serves all shards that request jobs at that time. */
export class Puller {
  private readonly calls: ShardCalls<PullCall, PullReply | null>;
  private readonly watch: ClockWatch;
  /** The call in which each shard last got jobs. */
  private readonly served = new Map<number, number>();
  private calledTimes = 0;

  constructor(
    private readonly ports: OwnerCallPorts,
    telemetry: Telemetry,
  ) {
    this.watch = new ClockWatch(ports.clock, telemetry);
    this.calls = new ShardCalls(ports, {
      callsMax: engineLimits.pullShardsMax,
      // The script enforces the byte limit of the call, however many shards share it.
      sizeMax: engineLimits.pullShardsMax,
      measureSize: () => 1,
      send: (calls, isRepeat) => this.send(calls, isRepeat),
    });
  }

  async pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced> {
    const askedMs = this.ports.clock.nowMs();
    const reply = await this.calls.submit(lease.shard, { lease, request });
    if (reply === null) return FENCED;
    const [more, nextDueMs, ready, lists, shardTimeMs, said, estimatedSkewMs, redisMs] = reply;
    this.watch.heard({ redisMs, shardTimeMs, askedMs });
    this.ports.quarantine.tell(lease.shard, said);
    const tenantQueues = [];
    for (const [i, { tenantQueue }] of request.tenantQueues.entries()) {
      const [hasMore = 0, ...cells] = lists[i] ?? [0];
      const { jobs, unreadable } = decodeJobs(this.ports.letters, tenantQueue, cells);
      for (const each of unreadable) await this.ports.quarantine.put(lease.shard, each);
      tenantQueues.push({ tenantQueue, jobs, more: hasMore === 1 });
    }
    return {
      more: more === 1,
      nextDueMs: nextDueMs === -1 ? null : nextDueMs,
      ready: decodeTenantQueues(this.ports.letters, ready),
      tenantQueues,
      shardTimeMs,
      estimatedSkewMs,
    };
  }

  /** Null: fenced. */
  private async send(calls: readonly PullCall[], isRepeat: boolean): Promise<(PullReply | null)[]> {
    // If one call cannot serve all shards, the unserved ones come first in the next.
    const servedIn = ({ lease }: PullCall) => this.served.get(lease.shard) ?? 0;
    const inTurn = calls.map((call, at) => ({ call, at })).toSorted((a, b) => servedIn(a.call) - servedIn(b.call));
    const keys = inTurn.map(({ call }) => shardPrefix(call.lease.shard));
    const bytesMax = Math.max(...calls.map(({ request }) => request.bytesMax));
    const args: ScriptArgument[] = [
      engineLimits.shardTimeSlackMs,
      engineLimits.pullDueMax,
      engineLimits.pullReadyMax,
      bytesMax,
      Math.floor(this.ports.clock.nowMs()),
    ];
    for (const { call } of inTurn) encodeRequest(this.ports.letters, call, isRepeat, args);
    // The script answers in this form.
    const replies = (await script.run(this.ports.connection, keys, args)) as (PullReply | null)[];
    this.calledTimes += 1;
    const answers = new Array<PullReply | null>(calls.length).fill(null);
    for (const [i, { call, at }] of inTurn.entries()) {
      const reply = replies[i] ?? null;
      answers[at] = reply;
      if (reply?.[3].some((cells) => cells.length > 1)) this.served.set(call.lease.shard, this.calledTimes);
    }
    return answers;
  }
}

/** Decodes the jobs of a tenant queue in a reply: entry id, entry and suppression of each. */
function decodeJobs(letters: ChannelLetters, tenantQueue: TenantQueue, cells: readonly string[]) {
  const ours = { letters, tenantId: tenantQueue.tenantId };
  const jobs: QueuedJob[] = [];
  const unreadable: Unreadable[] = [];
  for (let at = 0; at + 2 < cells.length; at += 3) {
    const [id = "", text = ""] = [cells[at], cells[at + 1]];
    try {
      jobs.push(decodeEntry(ours, id, text, cells[at + 2] ?? ""));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      unreadable.push({ at: ["entry", encodeTenantQueue(letters, tenantQueue), id], why, text });
    }
  }
  return { jobs, unreadable };
}

/**
 * Appends to `args`, which all shards of a call share. A repeat names every tenant queue, because the names in the
 * first try's answer are lost.
 */
function encodeRequest(
  letters: ChannelLetters,
  { lease, request }: PullCall,
  isRepeat: boolean,
  args: ScriptArgument[],
): void {
  const { tenantQueues, survey, shardTimeMs, confirmedSkewMs } = request;
  const reckoned = shardTimeMs === null ? "" : Math.round(shardTimeMs);
  args.push(lease.token, survey || isRepeat ? 1 : 0, reckoned, confirmedSkewMs ?? "", tenantQueues.length);
  for (const pull of tenantQueues)
    args.push(encodeTenantQueue(letters, pull.tenantQueue), pull.after ?? "", pull.entriesMax, pull.bytesMax);
}
