import type { Clock } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import { ShardCommits } from "./shard-commits.ts";

export interface ShardCallsOptions<Call, Reply> {
  readonly clock: Clock;
  /** A single Redis takes the calls of all shards in one script call, a cluster one a slot. */
  readonly shardsPerCall: "all" | "one";
  /** Most calls to shards in one script call, and what each counts for of how much. */
  readonly callsMax: number;
  readonly sizeMax: number;
  sizeOf(call: Call): number;
  /** Answers in the order of the calls. `isRepeat`: each goes alone, after a script call of all of them failed midway. */
  send(calls: readonly Call[], isRepeat: boolean): Promise<readonly Reply[]>;
}

/** While Redis works on one, the answer of the other is worked on. No shard is in both: its owner asks one at a time. */
const IN_FLIGHT_MAX = 2;

type Outcome<Reply> = { readonly reply: Reply } | { readonly error: unknown };

/**
 * What the owners of many shards ask at one time, in one script call. It must be safe to repeat.
 *
 * A shard's data may break the script (a key of another type, say), and other shards must not feel it: a script call that
 * fails, and not because Redis is away, is made again for each shard alone.
 */
export class ShardCalls<Call, Reply> {
  private readonly commits: ShardCommits<Call, Outcome<Reply>>;

  constructor(private readonly options: ShardCallsOptions<Call, Reply>) {
    const { clock, shardsPerCall, callsMax, sizeMax, sizeOf } = options;
    this.commits = new ShardCommits(shardsPerCall, {
      clock,
      itemsMax: callsMax,
      bytesMax: sizeMax,
      bytesOf: sizeOf,
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
      return reply === undefined ? { error: new Error("the script answered nothing") } : { reply };
    } catch (error) {
      return { error };
    }
  }
}
