import type { Clock } from "../domain/clock.ts";
import type { RateState } from "../domain/queue.ts";
import { remember } from "../domain/remember.ts";
import type { Tenant } from "../domain/tenant.ts";

/** Tenants that are remembered; of more, those that were refused longest ago are asked about again. */
const TENANTS_MAX = 10_000;
/** A full queue can have room again at any moment. */
const FULL_QUEUE_MS = 1_000;

export interface FullQueue {
  readonly what: "jobs" | "bytes";
  /** As it was when the queue was found full. */
  readonly rate: RateState | null;
}

interface Remembered<T> {
  readonly untilMs: number;
  readonly of: T;
}

/**
 * What this process was told of tenants that are over a limit, so that their next requests are refused without asking the
 * queue again, and before their bodies are read.
 *
 * K1. A window is taken for used up no longer than the queue said, whole seconds: whoever waits for the seconds of
 *     Retry-After is asked about again. Before that it has no room, for nobody takes anything out of a window.
 * K2. What is refused from here is not counted, so a tenant that keeps asking is let in as soon as one that waits.
 * K3. Under another limit (the plan was changed) nothing of it holds.
 */
export class KnownLimits {
  private readonly windows = new Map<string, Remembered<RateState>>();
  private readonly queues = new Map<string, Remembered<FullQueue>>();

  constructor(private readonly clock: Clock) {}

  noteUsedUp({ tenantId }: Tenant, rate: RateState): void {
    const untilMs = this.clock.monotonicMs() + rate.resetSeconds * 1000;
    remember(this.windows, { key: tenantId, value: { untilMs, of: rate }, max: TENANTS_MAX });
  }

  noteFull({ tenantId }: Tenant, queue: FullQueue): void {
    const untilMs = this.clock.monotonicMs() + FULL_QUEUE_MS;
    remember(this.queues, { key: tenantId, value: { untilMs, of: queue }, max: TENANTS_MAX });
  }

  /** The tenant's window where it is used up, with the seconds that are left now. */
  usedUp({ tenantId, plan }: Tenant): RateState | null {
    if (this.windows.size === 0) return null;
    const known = this.windows.get(tenantId);
    if (known === undefined) return null;
    const leftMs = known.untilMs - this.clock.monotonicMs();
    if (leftMs > 0 && known.of.limit === plan.requestsPerMinute) {
      return { ...known.of, resetSeconds: Math.ceil(leftMs / 1000) };
    }
    this.windows.delete(tenantId);
    return null;
  }

  fullQueue({ tenantId }: Tenant): FullQueue | null {
    if (this.queues.size === 0) return null;
    const known = this.queues.get(tenantId);
    if (known === undefined) return null;
    if (known.untilMs > this.clock.monotonicMs()) return known.of;
    this.queues.delete(tenantId);
    return null;
  }
}
