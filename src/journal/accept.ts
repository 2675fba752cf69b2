import type { Clock } from "../core/clock.ts";
import { sleep } from "../core/clock.ts";
import { TransportError, UnavailableError } from "../core/errors.ts";
import type { AcceptResult, NewJob, RateState } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { TenantRef } from "../core/tenant.ts";
import acceptLua from "./accept.lua" with { type: "text" };
import { CHANNEL_LETTER, STATUS_LETTER } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { GroupCommit } from "./group-commit.ts";
import { shardPrefix } from "./keys.ts";
import { Script, type ScriptArgument } from "./script.ts";
import { byShard } from "./shard-groups.ts";

const script = new Script(acceptLua, "refuse");
const RATE_SLICES = limits.rateWindowMs / limits.rateSliceMs;

/** A request that is counted, and the job that it queues, if any. */
interface Entrant {
  readonly tenant: TenantRef;
  readonly requestsPerMinute: number;
  readonly job: NewJob | null;
}

export type Admission = AcceptResult | { readonly kind: "admitted"; readonly rate: RateState };

/** The first verb: counts requests and queues jobs, all that are waiting at one time in one call. */
export class Acceptor {
  private readonly commits: GroupCommit<Entrant, Admission>;

  constructor(
    private readonly connection: RedisConnection,
    private readonly clock: Clock,
    /** A single Redis takes all shards in one call; a cluster one call a slot. */
    private readonly shardsPerCall: "all" | "one",
  ) {
    this.commits = new GroupCommit({
      callsMax: 4,
      itemsMax: limits.acceptBatchJobsMax,
      bytesMax: limits.acceptBatchBytesMax,
      bytesOf: (entrant) => entrant.job?.payload.length ?? 0,
      send: (entrants) => this.send(entrants),
    });
  }

  submit(entrant: Entrant): Promise<Admission> {
    return this.commits.submit(entrant);
  }

  private async send(entrants: readonly Entrant[]): Promise<Admission[]> {
    const answers = new Array<Admission>(entrants.length);
    const groups = byShard(entrants, (entrant) => entrant.tenant.shard);
    const calls = this.shardsPerCall === "all" ? [groups] : groups.map((group) => [group]);
    await Promise.all(
      calls.map(async (shards) => {
        const reply = await this.callUntilAnswered(shards);
        const indexes = shards.flatMap((group) => group.indexes);
        indexes.forEach((index, i) => {
          const entrant = entrants[index];
          if (entrant) answers[index] = decodeAnswer(reply.slice(4 * i, 4 * i + 4), entrant.requestsPerMinute);
        });
      }),
    );
    return answers;
  }

  /** A call whose effect is unknown is repeated for a while: the script recognises the jobs that it has. */
  private async callUntilAnswered(shards: readonly ShardEntrants[]): Promise<unknown[]> {
    const giveUpAt = this.clock.monotonicMs() + limits.acceptRetryMs;
    const keys = shards.map((group) => shardPrefix(group.shard));
    for (let repeated = false; ; ) {
      try {
        // The script answers four values an item.
        return (await script.run(this.connection, keys, encodeCall(shards, repeated))) as unknown[];
      } catch (error) {
        const canRepeat = error instanceof TransportError || (error instanceof UnavailableError && !isFull(error));
        if (!canRepeat || this.clock.monotonicMs() >= giveUpAt) throw error;
        if (error instanceof TransportError) repeated = true;
      }
      await sleep(this.clock, 50);
    }
  }
}

interface ShardEntrants {
  readonly shard: number;
  readonly items: readonly Entrant[];
  readonly indexes: readonly number[];
}

/** Out of memory does not pass within a request's time; loading and failing over may. */
function isFull(error: UnavailableError): boolean {
  return error.cause instanceof Error && /^(OOM|MISCONF)\b/.test(error.cause.message);
}

function encodeCall(shards: readonly ShardEntrants[], repeated: boolean): ScriptArgument[] {
  const args: ScriptArgument[] = [repeated ? 1 : 0, RATE_SLICES, limits.rateSliceMs, limits.idempotencyKeptMs];
  for (const { shard, items } of shards) {
    args.push(shard, items.length);
    for (const { tenant, requestsPerMinute, job } of items) {
      args.push(tenant.tenantId, requestsPerMinute);
      if (job === null) args.push("", "", "", "", "", "", "");
      else {
        args.push(job.jobId, CHANNEL_LETTER[job.channel], STATUS_LETTER.pending, job.recipient, job.payload);
        args.push(job.idempotency?.key ?? "", job.idempotency?.fingerprint ?? "");
      }
    }
  }
  return args;
}

function decodeAnswer(reply: readonly unknown[], limit: number): Admission {
  const [kind, jobId, remaining, resetSeconds] = reply;
  const rate: RateState = { limit, remaining: Number(remaining), resetSeconds: Number(resetSeconds) };
  switch (kind) {
    case "accepted":
    case "replayed":
      return { kind, jobId: String(jobId), rate };
    case "conflict":
    case "limited":
    case "admitted":
      return { kind, rate };
    default:
      throw new Error(`accept.lua answered ${String(kind)}`);
  }
}
