import type { Clock } from "../domain/clock.ts";
import { TransportError } from "../domain/errors.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { toMonth } from "./month.ts";

const FLUSH_MS = 5_000;
/** Rows per transaction. */
const ROWS_MAX = 500;
/** Tenants and months in memory while the registry is away; more are not counted. */
const COUNTED_MAX = 100_000;

/** A tenant's usage in a month, counted by one process since its last write. */
export interface UsageCount {
  readonly tenantId: string;
  /** UTC, `YYYY-MM`. */
  readonly month: string;
  readonly apiCalls: number;
  readonly accepted: number;
}

export interface UsageCounterOptions {
  /** Adds to the stored counts, in one transaction. Rejects with `TransportError` if the effect is unknown. */
  readonly store: { addUsage(counts: readonly UsageCount[]): Promise<void> };
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Counts tenants' calls and accepted jobs in memory, and adds them to the registry every few seconds: a request costs no
 * statement and no wait.
 *
 * A process that is killed loses the counts of its last seconds, and a write whose effect is unknown is not repeated: a
 * tenant is never charged for more than it did.
 */
export class UsageCounter {
  private counted = new Map<string, { tenantId: string; month: string; apiCalls: number; accepted: number }>();
  private readonly flushes: Repeated;

  constructor(private readonly options: UsageCounterOptions) {
    this.flushes = new Repeated(
      () => this.flush(),
      options.clock,
      () => FLUSH_MS,
    );
  }

  /** Counts an authenticated request of a tenant. `queued`: the number of new jobs in its answer. */
  note(tenantId: string, queued: number): void {
    const month = toMonth(this.options.clock.nowMs());
    const count = this.findCount(tenantId, month);
    if (count === null) return;
    count.apiCalls += 1;
    count.accepted += queued;
  }

  /** Safe to repeat. */
  start(): void {
    this.flushes.start();
  }

  /** Writes the remaining counts. Safe to call twice. */
  async stop(): Promise<void> {
    await this.flushes.stop();
    await this.flush();
  }

  /** Never rejects. */
  async flush(): Promise<void> {
    const all = [...this.counted.values()];
    this.counted = new Map();
    // In one order everywhere, so that processes never wait for each other's rows in a circle.
    all.sort((a, b) => (a.tenantId < b.tenantId ? -1 : a.tenantId > b.tenantId ? 1 : a.month < b.month ? -1 : 1));
    for (let at = 0; at < all.length; at += ROWS_MAX) await this.write(all.slice(at, at + ROWS_MAX));
  }

  private async write(counts: readonly UsageCount[]): Promise<void> {
    const { store, telemetry } = this.options;
    try {
      await store.addUsage(counts);
    } catch (error) {
      const isUnknown = error instanceof TransportError;
      telemetry.log("warn", isUnknown ? "counts of usage may be lost" : "counts of usage are written later", {
        tenants: counts.length,
        error: String(error),
      });
      if (isUnknown) return;
      for (const { tenantId, month, apiCalls, accepted } of counts) {
        const count = this.findCount(tenantId, month);
        if (count === null) continue;
        count.apiCalls += apiCalls;
        count.accepted += accepted;
      }
    }
  }

  private findCount(tenantId: string, month: string) {
    const key = `${tenantId} ${month}`;
    const known = this.counted.get(key);
    if (known !== undefined) return known;
    if (this.counted.size >= COUNTED_MAX) return null;
    const count = { tenantId, month, apiCalls: 0, accepted: 0 };
    this.counted.set(key, count);
    return count;
  }
}
