import { type Clock, sleep } from "../../../domain/clock.ts";
import { TransportError, UnavailableError } from "../../../domain/errors.ts";
import type { QueueQuota } from "../../../domain/jobs/queue.ts";
import { type Retry, type RetryCall, type RetryResult, SETTLEMENTS_PER_LIFE } from "../../../domain/jobs/retry.ts";
import { limits } from "../../../domain/limits.ts";
import { engineLimits } from "../../limits.ts";
import { type ChannelLetters, encodeRecord, encodeRetried } from "../codec.ts";
import type { RedisConnection } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import type { QueueRoom } from "../queue-room.ts";
import { Script, type ScriptArgument } from "../script.ts";
import retryLua from "./retry.lua" with { type: "text" };

const script = new Script(retryLua, "refuse", {
  RETRIED: "retried" satisfies RetryResult,
  NOT_FAILED: "not_failed" satisfies RetryResult,
  UNKNOWN: "unknown" satisfies RetryResult,
  SETTLEMENTS_PER_LIFE,
});

const NO_BOUND = -1;
const REPEAT_MS = 50;

/** Queues failed jobs again, for operators: accept's addition for jobs that are known. */
export class Retrier {
  constructor(
    private readonly connection: RedisConnection,
    private readonly clock: Clock,
    private readonly letters: ChannelLetters,
    /** Narrows tenants' shares while Redis is nearly full; absent: shares are not narrowed. */
    private readonly room?: QueueRoom,
  ) {}

  async retry(call: RetryCall): Promise<readonly RetryResult[]> {
    const results: RetryResult[] = [];
    for (const retries of this.pieces(call.retries)) {
      try {
        results.push(...(await this.send({ ...call, retries })));
      } catch (error) {
        if (results.length === 0) throw error;
        throw new TransportError("some of the retries took effect", { cause: error });
      }
    }
    return results;
  }

  /** Splits the retries into pieces of bounded size, so that none blocks Redis. */
  private *pieces(retries: readonly Retry[]): Generator<readonly Retry[]> {
    let piece: Retry[] = [];
    let bytes = 0;
    for (const retry of retries) {
      const { length } = retry.content.payload;
      const { retryBatchJobsMax, retryBatchBytesMax } = engineLimits;
      if (piece.length === retryBatchJobsMax || (piece.length > 0 && bytes + length > retryBatchBytesMax)) {
        yield piece;
        [piece, bytes] = [[], 0];
      }
      piece.push(retry);
      bytes += length;
    }
    if (piece.length > 0) yield piece;
  }

  /** Repeats a call whose effect is unknown; once unknown, it stays so until an answer arrives. */
  private async send(call: RetryCall): Promise<readonly RetryResult[]> {
    const { clock } = this;
    const giveUpAt = clock.monotonicMs() + limits.acceptRetryMs;
    const keys = [shardPrefix(call.tenant.shard)];
    const quota = this.room === undefined ? call.quota : this.room.within(call.quota);
    const args = encodeCall(this.letters, call, quota);
    let unknown: TransportError | null = null;
    for (;;) {
      args[0] = unknown === null ? 0 : 1;
      try {
        // The script answers one word per job.
        return (await script.run(this.connection, keys, args)) as RetryResult[];
      } catch (error) {
        const canRepeat = error instanceof TransportError || error instanceof UnavailableError;
        if (error instanceof TransportError) unknown = error;
        if (!canRepeat || clock.monotonicMs() >= giveUpAt) throw unknown ?? error;
      }
      await sleep(clock, REPEAT_MS);
    }
  }
}

function encodeCall(
  letters: ChannelLetters,
  { tenant, retries, atMs }: RetryCall,
  quota: QueueQuota | undefined,
): ScriptArgument[] {
  const { tenantId, shard } = tenant;
  const args: ScriptArgument[] = [0, shard, tenantId, quota?.jobs ?? NO_BOUND, quota?.bytes ?? NO_BOUND, atMs];
  for (const retry of retries) {
    const { job, content } = retry;
    args.push(encodeRetried(letters, retry), encodeRecord(letters, job), job.began ?? 0, content.settlements);
  }
  return args;
}
