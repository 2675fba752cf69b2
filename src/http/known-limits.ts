import type { Clock } from "../domain/clock.ts";
import type { QueueShare, RateState } from "../domain/jobs/queue.ts";
import { remember } from "../domain/remember.ts";
import type { Tenant } from "../domain/tenants/tenant.ts";

/** Tenants remembered. Beyond that, the tenant refused longest ago is forgotten and its limit looked up again. */
const TENANTS_MAX = 10_000;
/** A full queue may have space again at any moment. */
const FULL_QUEUE_MS = 1_000;

export interface FullQueue {
  readonly what: Exclude<QueueShare, "keys">;
  /** The rate window at the time the queue was found full. */
  readonly rate: RateState | null;
}

interface Remembered<T> {
  readonly untilMs: number;
  readonly of: T;
}

/**
 * Remembers which tenants are over a limit, so their next requests are refused before their bodies are read and without asking
 * the queue again.
 *
 * K1. A window counts as used up no longer than the queue reported, in whole seconds: after the number of seconds in
 *     Retry-After, the queue is checked again. Until then the window stays full, because counted requests are never removed
 *     from it.
 * K2. Requests refused from here are not counted, so a tenant that keeps asking is let in as soon as one that waits.
 * K3. An entry stops applying when the limit changes, for example with a new plan.
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

  /** The tenant's rate window if it is used up, with the seconds left as of now. */
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
