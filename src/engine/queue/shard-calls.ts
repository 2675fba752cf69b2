import type { Clock } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { ChannelLetters } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { GroupCommit } from "./group-commit.ts";
import type { Quarantine } from "./verbs/quarantine.ts";

/** The dependencies of a shard owner's calls. */
export interface OwnerCallPorts {
  readonly connection: RedisConnection;
  readonly clock: Clock;
  readonly quarantine: Quarantine;
  readonly letters: ChannelLetters;
  /** A single Redis takes the calls of all shards in one script call, a cluster one script call per slot. */
  readonly shardsPerCall: "all" | "one";
}

export interface ShardCallsOptions<Call, Reply> {
  /** Most shard calls per script call, and the limit on their total weight. */
  readonly callsMax: number;
  readonly sizeMax: number;
  measureSize(call: Call): number;
  /**
   * Answers in the order of the calls. `isRepeat`: each call goes alone, after a combined script call failed midway.
   */
  send(calls: readonly Call[], isRepeat: boolean): Promise<readonly Reply[]>;
}

/**
 * While Redis works on one, the client works on the answer of the other. No shard is in both: its owner makes one call
 * at a time.
 */
const IN_FLIGHT_MAX = 2;

type Outcome<Reply> = { readonly reply: Reply } | { readonly error: unknown };

/**
 * Combines the concurrent calls of many shards' owners into one script call. A call must be safe to repeat.
 *
 * A shard's data may break the script (a key of another type, say), and that must not affect other shards: if a script
 * call fails for any reason but an unavailable Redis, each shard's call is repeated alone.
 */
export class ShardCalls<Call, Reply> {
  private readonly commits: GroupCommit<Call, Outcome<Reply>>;

  constructor(
    { clock, shardsPerCall }: OwnerCallPorts,
    private readonly options: ShardCallsOptions<Call, Reply>,
  ) {
    const { callsMax, sizeMax, measureSize } = options;
    this.commits = new GroupCommit(shardsPerCall, {
      clock,
      itemsMax: callsMax,
      bytesMax: sizeMax,
      measureBytes: measureSize,
      inFlightMax: IN_FLIGHT_MAX,
      send: (calls) => this.send(calls),
    });
  }

  async submit(shard: number, call: Call): Promise<Reply> {
    const outcome = await this.commits.submit(shard, call);
    if ("error" in outcome) throw outcome.error;
    return outcome.reply;
  }

  private async send(calls: readonly Call[]): Promise<Outcome<Reply>[]> {
    try {
      return (await this.options.send(calls, false)).map((reply) => ({ reply }));
    } catch (error) {
      if (calls.length === 1 || isOutage(error)) throw error;
    }
    return Promise.all(calls.map((call) => this.sendAlone(call)));
  }

  private async sendAlone(call: Call): Promise<Outcome<Reply>> {
    try {
      const [reply] = await this.options.send([call], true);
      return reply === undefined ? { error: new Error("the script returned no answer") } : { reply };
    } catch (error) {
      return { error };
    }
  }
}
