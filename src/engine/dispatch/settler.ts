import { BackOff } from "../../domain/back-off.ts";
import { sleep } from "../../domain/clock.ts";
import { FENCED, type Fenced, type Settled, type Settlement } from "../../domain/jobs/queue.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { logFailure } from "../../domain/telemetry.ts";
import { engineLimits } from "../limits.ts";

const NONE: ReadonlySet<string> = new Set();

export interface SettlerOptions extends RuntimePorts {
  /** Writes settlements of one shard to the queue. */
  send(settlements: readonly Settlement[]): Promise<Settled | Fenced>;
  /** `reported`: jobs that ended with success because of a report, despite their settlement. */
  onLanded(settlements: readonly Settlement[], reported: ReadonlySet<string>): void;
  /** Called when the lease was lost. No further settlement lands. */
  onFenced(): void;
}

/**
 * Records the outcomes of a shard's jobs. Each call takes all settlements that wait at that time.
 *
 * S1. At most one call is in flight.
 * S2. A settlement is repeated until it lands: the provider has answered, and only this process has the answer.
 * S3. Only a lost lease or `abandon` ends S2; the job is then still in its tenant queue.
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

  /** No further settlement lands. */
  get isAbandoned(): boolean {
    return this.abandoned.signal.aborted;
  }

  /** Resolves when no settlement waits, or all were abandoned: an unanswered call then delays no caller. */
  async idle(): Promise<void> {
    while (this.sending !== null && !this.isAbandoned) await Promise.race([this.sending, this.givenUp.promise]);
  }

  /** Gives up all settlements that have not landed, and all later ones. */
  abandon(): void {
    this.abandoned.abort();
    this.givenUp.resolve();
    this.waiting = [];
  }

  private async sendAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, engineLimits.settleBatchMax);
      const answer = await this.sendUntilLanded(batch);
      if (answer !== FENCED) this.options.onLanded(batch, answer === "settled" ? NONE : answer);
      else if (!this.isAbandoned) {
        this.abandon();
        this.options.onFenced();
      }
    }
    this.sending = null;
  }

  private async sendUntilLanded(batch: readonly Settlement[]): Promise<Settled | Fenced> {
    const { send, clock, random, telemetry } = this.options;
    const waits = new BackOff(engineLimits.queueRetry, random);
    while (!this.isAbandoned) {
      try {
        return await send(batch);
      } catch (error) {
        telemetry.count("queue_calls_failed", { call: "settle" });
        logFailure(telemetry, "settling failed and is repeated", error);
      }
      await sleep(clock, waits.nextMs(), this.abandoned.signal);
    }
    return FENCED;
  }
}
