import type { Clock } from "../../../domain/clock.ts";
import { sleep } from "../../../domain/clock.ts";
import { TransportError, UnavailableError } from "../../../domain/errors.ts";
import type { BatchItemAnswer, BatchKey, BatchPiece, PieceResult } from "../../../domain/jobs/batch.ts";
import type { AcceptResult, NewJob, QueueQuota, QueueShare, RateState } from "../../../domain/jobs/queue.ts";
import { limits } from "../../../domain/limits.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { engineLimits } from "../../limits.ts";
import { type ChannelLetters, encodeEntry, encodeTimed } from "../codec.ts";
import type { RedisConnection } from "../connection.ts";
import { GroupCommit } from "../group-commit.ts";
import { shardPrefix } from "../keys.ts";
import { PieceTurns } from "../piece-turns.ts";
import type { QueueRoom } from "../queue-room.ts";
import type { Replicas } from "../replicas.ts";
import { Script, type ScriptArgument } from "../script.ts";
import acceptLua from "./accept.lua" with { type: "text" };

/** The first letter of an answer to an item. */
const ANSWER = {
  ACCEPTED: "a",
  COUNTED: "n",
  CONFLICT: "c",
  REPLAYED: "r",
  LIMITED: "l",
  QUEUE_FULL: "q",
} as const;

const script = new Script(acceptLua, "refuse", ANSWER);
const RATE_SLICES = engineLimits.rateWindowMs / engineLimits.rateSliceMs;
const NO_BOUND = -1;

/** A request to count, and its job, if any. */
interface Entrant {
  readonly tenant: TenantRef;
  /** Null: the request was counted before. */
  readonly requestsPerMinute: number | null;
  readonly job: NewJob | null;
  /** Its position, as a message of a batch under a key. */
  readonly inBatch?: InBatch;
}

interface InBatch {
  readonly key: BatchKey;
  readonly index: number;
}

/** The unit that enters the queue in one call: a request, or messages of a batch. */
type Together = readonly Entrant[];

export type Admission = AcceptResult | { readonly kind: "admitted"; readonly rate: RateState };

export interface AcceptorOptions {
  readonly letters: ChannelLetters;
  /** Replicas that must have accepted jobs; absent: none. */
  readonly replicas?: Replicas;
  /** Narrows tenants' shares while Redis is nearly full; absent: shares are not narrowed. */
  readonly room?: QueueRoom;
}

/** The first verb: counts requests and queues jobs, all that are waiting at one time in one call. */
export class Acceptor {
  private readonly commits: GroupCommit<Together, readonly Admission[]>;
  private readonly turns: PieceTurns;

  constructor(
    private readonly connection: RedisConnection,
    private readonly clock: Clock,
    shardsPerCall: "all" | "one",
    private readonly options: AcceptorOptions,
  ) {
    this.turns = new PieceTurns(shardsPerCall, clock);
    this.commits = new GroupCommit(shardsPerCall, {
      clock,
      itemsMax: engineLimits.acceptBatchJobsMax,
      bytesMax: engineLimits.acceptBatchBytesMax,
      measureBytes: sumBytes,
      measureSize: (together) => together.length,
      send: (all) => this.send(all),
    });
  }

  async submit(entrant: Entrant): Promise<Admission> {
    const [answer] = await this.commits.submit(entrant.tenant.shard, [entrant]);
    if (answer === undefined) throw new Error("accept.lua answered nothing to a request");
    return answer;
  }

  /** Queues messages of a batch, in one call that lands whole or not at all. */
  async submitPiece(tenant: TenantRef, requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult> {
    const { key, items, isFirstCounted } = piece;
    const entrants = items.map(({ index, job }, i) => ({
      tenant,
      requestsPerMinute: i === 0 && isFirstCounted ? null : requestsPerMinute,
      job,
      ...(key !== null && { inBatch: { key, index } }),
    }));
    const answers = await this.turns.inTurn(tenant.shard, () => this.commits.submit(tenant.shard, entrants));
    const first = answers[0];
    if (first?.kind === "conflict") return { kind: "conflict" };
    if (first?.kind === "replayed") return { kind: "taken", baseId: first.jobId };
    // The whole piece is refused because of its key, or none of it.
    return { kind: "answered", answers: answers as readonly BatchItemAnswer[] };
  }

  private async send(all: readonly Together[]): Promise<(readonly Admission[])[]> {
    const shards = byShardAndTenant(all);
    const reply = await this.callUntilAnswered(shards);
    const inOrder = shards.flatMap(({ tenants }) => tenants.flatMap((tenant) => tenant.entrants));
    const answers = new Map(inOrder.map((entrant, i) => [entrant, decodeAnswer(reply[i] ?? "", entrant)]));
    return all.map((entrants) => entrants.flatMap((entrant) => answers.get(entrant) ?? []));
  }

  /**
   * Repeats a call whose effect is unknown for a while: a repeat recognises the jobs that exist. Once unknown, the
   * effect stays unknown, whatever a repeat answers: a job that may be queued must never be taken for one that is not.
   */
  private async callUntilAnswered(shards: readonly ShardEntrants[]): Promise<string[]> {
    const giveUpAt = this.clock.monotonicMs() + limits.acceptRetryMs;
    const keys = shards.map((group) => shardPrefix(group.shard));
    const args = encodeCall(this.options, shards, this.clock.nowMs());
    let unknown: TransportError | null = null;
    for (let tries = 0; ; tries += 1) {
      args[0] = tries === 0 ? 0 : 1;
      try {
        // The script answers one text per item.
        const reply = (await script.run(this.connection, keys, args)) as string[];
        await this.options.replicas?.haveWrites(keys[0] ?? "");
        return reply;
      } catch (error) {
        const canRepeat = error instanceof TransportError || (error instanceof UnavailableError && !isFull(error));
        if (error instanceof TransportError) unknown = error;
        if (!canRepeat || this.clock.monotonicMs() >= giveUpAt) throw unknown ?? error;
      }
      await sleep(this.clock, 50);
    }
  }
}

interface ShardEntrants {
  readonly shard: number;
  readonly tenants: TenantEntrants[];
}

interface TenantEntrants {
  readonly tenantId: string;
  readonly requestsPerMinute: number | null;
  readonly quota: QueueQuota | undefined;
  /** Set if they are messages of this batch. */
  readonly batch: BatchKey | undefined;
  readonly entrants: Entrant[];
}

/**
 * Groups entrants by shard and tenant. Usually there is one group per tenant: only a plan change and batches under a
 * key split it. The order stays, apart from requests that were counted before.
 */
function byShardAndTenant(all: readonly Together[]): readonly ShardEntrants[] {
  const shards = new Map<number, ShardEntrants>();
  const latest = new Map<string, TenantEntrants>();
  for (const entrants of all) {
    for (const entrant of entrants) {
      const { tenantId, shard: number } = entrant.tenant;
      const { requestsPerMinute, job } = entrant;
      const batch = entrant.inBatch?.key;
      const key = toGroupKey(entrant);
      const known = latest.get(key);
      if (known !== undefined && known.requestsPerMinute === requestsPerMinute && fits(known.quota, job)) {
        known.entrants.push(entrant);
        continue;
      }
      const tenant = { tenantId, requestsPerMinute, quota: job?.quota, batch, entrants: [entrant] };
      latest.set(key, tenant);
      const shard = shards.get(number);
      if (shard === undefined) shards.set(number, { shard: number, tenants: [tenant] });
      else shard.tenants.push(tenant);
    }
  }
  return [...shards.values()];
}

function toGroupKey({ tenant: { tenantId }, requestsPerMinute, inBatch }: Entrant): string {
  const key = requestsPerMinute === null ? `${tenantId} counted` : tenantId;
  return inBatch === undefined ? key : `${key} ${inBatch.key.run}`;
}

function sumBytes(entrants: Together): number {
  return entrants.reduce((sum, { job }) => sum + (job?.payload.length ?? 0), 0);
}

function fits(quota: QueueQuota | undefined, job: NewJob | null): boolean {
  return job === null || (quota?.jobs === job.quota?.jobs && quota?.bytes === job.quota?.bytes);
}

/** Whether the error lasts longer than a request can wait: out of memory does; loading and failing over may not. */
function isFull(error: UnavailableError): boolean {
  return error.cause instanceof Error && /^(OOM|MISCONF)\b/.test(error.cause.message);
}

/** Encodes the arguments of a first try; a repeat differs in the first of them. */
function encodeCall(
  { letters, room }: AcceptorOptions,
  shards: readonly ShardEntrants[],
  nowMs: number,
): ScriptArgument[] {
  const args: ScriptArgument[] = [0, findFirstJob(shards), engineLimits.jobKeptMs];
  args.push(RATE_SLICES, engineLimits.rateSliceMs, engineLimits.idempotencyKeptMs);
  for (const { shard, tenants } of shards) {
    args.push(shard, tenants.length);
    for (const { tenantId, requestsPerMinute, quota: granted, batch, entrants } of tenants) {
      const quota = room === undefined ? granted : room.within(granted);
      args.push(tenantId, requestsPerMinute ?? COUNTED_BEFORE);
      args.push(quota?.jobs ?? NO_BOUND, quota?.bytes ?? NO_BOUND, entrants.length);
      args.push(batch === undefined ? "" : `${batch.baseId} ${batch.fingerprint} ${batch.key}`);
      args.push(room?.claimedBytesMax ?? NO_BOUND);
      for (const { job, inBatch } of entrants) {
        args.push(job === null ? "" : encodeItem(letters, job, nowMs));
        args.push(inBatch?.index ?? encodeIdempotency(job?.idempotency ?? null));
      }
    }
  }
  return args;
}

function encodeItem(letters: ChannelLetters, job: NewJob, nowMs: number): string {
  return encodeTimed(encodeEntry(letters, job), job, nowMs);
}

/**
 * Returns a text that identifies the call: job ids are used once, except those of a batch under a key, which another
 * run of the batch uses again. "" if the call only counts; a late try may then count once more.
 */
function findFirstJob(shards: readonly ShardEntrants[]): string {
  for (const { tenants } of shards) {
    for (const { entrants } of tenants) {
      for (const { job, inBatch } of entrants) {
        if (inBatch !== undefined) return `${inBatch.key.run}:${inBatch.index}`;
        if (job !== null) return job.jobId;
      }
    }
  }
  return "";
}

const COUNTED_BEFORE = -1;
const UNCOUNTED: RateState = { limit: 0, remaining: 0, resetSeconds: 0 };

function encodeIdempotency(idempotency: NewJob["idempotency"]): string {
  return idempotency === null ? "" : `${idempotency.fingerprint} ${idempotency.key}`;
}

/** Decodes the answer's letter, the remaining requests, and the letter's own fields, as described in accept.lua. */
function decodeAnswer(answer: string, { requestsPerMinute, job }: Entrant): Admission {
  const space = answer.indexOf(" ");
  const remaining = Number(space === -1 ? answer.slice(1) : answer.slice(1, space));
  const detail = space === -1 ? "" : answer.slice(space + 1);
  const rate =
    requestsPerMinute === null
      ? UNCOUNTED
      : { limit: requestsPerMinute, remaining, resetSeconds: engineLimits.rateWindowMs / 1000 };
  switch (answer.charAt(0)) {
    case ANSWER.ACCEPTED:
      return { kind: "accepted", jobId: job?.jobId ?? "", rate, ...(detail !== "" && { isEarlier: true }) };
    case ANSWER.REPLAYED:
      return { kind: "replayed", jobId: detail, rate };
    case ANSWER.CONFLICT:
      return { kind: "conflict", rate };
    case ANSWER.COUNTED:
      return { kind: "admitted", rate };
    case ANSWER.LIMITED:
      return { kind: "limited", rate: { ...rate, resetSeconds: Number(detail) } };
    case ANSWER.QUEUE_FULL:
      // As accept.lua names them.
      return { kind: "queue_full", what: detail as QueueShare, rate };
    default:
      throw new Error(`accept.lua answered ${answer}`);
  }
}
