import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import { limits } from "../../domain/limits.ts";
import { FENCED, type Fenced, type Settlement } from "../../domain/queue.ts";
import type { Telemetry } from "../../domain/telemetry.ts";

export interface SettlerOptions {
  /** Writes them down, all of one shard. */
  send(settlements: readonly Settlement[]): Promise<"settled" | Fenced>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  onLanded(settlements: readonly Settlement[]): void;
  /** The lease is no longer held. Nothing more lands. */
  onFenced(): void;
}

/**
 * Writes down what became of a shard's jobs, all that are waiting at one time in one call.
 *
 * S1. One call is under way at a time. S2. A settlement is repeated until it lands: the provider has answered, and
 * nobody else knows its answer. S3. Only a lost lease or `abandon` ends S2; the box still holds the job then.
 */
export class Settler {
  private waiting: Settlement[] = [];
  private sending: Promise<void> | null = null;
  private readonly abandoned = new AbortController();
  private readonly givenUp = Promise.withResolvers<void>();

  constructor(private readonly options: SettlerOptions) {}

  submit(settlement: Settlement): void {
    if (this.isAbandoned) return;
    this.waiting.push(settlement);
    this.sending ??= this.sendAll();
  }

  /** Nothing more lands. */
  get isAbandoned(): boolean {
    return this.abandoned.signal.aborted;
  }

  /** Resolves when nothing waits, or all is given up: a call that is never answered holds up nobody then. */
  async idle(): Promise<void> {
    while (this.sending !== null && !this.isAbandoned) await Promise.race([this.sending, this.givenUp.promise]);
  }

  /** Gives up what has not landed, and all that comes after. */
  abandon(): void {
    this.abandoned.abort();
    this.givenUp.resolve();
    this.waiting = [];
  }

  private async sendAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, limits.settleBatchMax);
      const answer = await this.sendUntilLanded(batch);
      if (answer === "settled") this.options.onLanded(batch);
      else if (!this.isAbandoned) {
        this.abandon();
        this.options.onFenced();
      }
    }
    this.sending = null;
  }

  private async sendUntilLanded(batch: readonly Settlement[]): Promise<"settled" | Fenced> {
    const { send, clock, telemetry } = this.options;
    for (let waitMs = 50; !this.isAbandoned; waitMs = Math.min(2 * waitMs, limits.queueRetryMs)) {
      try {
        return await send(batch);
      } catch (error) {
        const expected = isOutage(error);
        telemetry.count("journal_calls_failed", { call: "settle" });
        telemetry.log(expected ? "warn" : "error", "settling failed and is repeated", { error: String(error) });
      }
      await sleep(clock, waitMs, this.abandoned.signal);
    }
    return FENCED;
  }
}
