import type { Clock } from "../../domain/clock.ts";
import { FENCED, type Lease, type OwnerQueue, type TenantQueue } from "../../domain/jobs/queue.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { logFailure } from "../../domain/telemetry.ts";
import { engineLimits } from "../limits.ts";

export interface DailyAllowancesOptions {
  readonly queue: OwnerQueue;
  readonly lease: Lease;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** A tenant queue's limit for a day, as its actor requests it. */
export interface DayAllowance {
  readonly tenantQueue: TenantQueue;
  /** UTC day, as `utcDayAt` counts. */
  readonly day: number;
  readonly perDay: number;
}

/** The right to start one delivery. */
export interface AllowanceUnit {
  /** No message was sent: the unit may be used again on its own day. */
  giveBack(): void;
}

/**
 * The remaining daily allowances of a shard's tenant queues, for tenants with a daily limit. The queue in Redis counts
 * the units; this class keeps the pieces that it has reserved there and not yet used.
 *
 * D1. A unit is used only after the queue has counted it, and on the day that it was counted for: no day ever exceeds
 *     its allowance, whichever process dies or shard moves in between.
 * D2. Units left when the term ends are lost: fewer messages are sent that day. A piece is at most a fiftieth of the
 *     day's allowance.
 * D3. At most one call per tenant queue is in flight.
 */
export class DailyAllowances {
  private readonly pages = new Map<string, Page>();
  private day = Number.NaN;

  constructor(private readonly options: DailyAllowancesOptions) {}

  /**
   * Returns how many deliveries of the tenant queue may start now. 0: the day's allowance is used up, or a request for
   * more is in flight; then `onMore` is called once when the queue has answered.
   */
  left(allowance: DayAllowance, onMore: () => void): number {
    const { tenantQueue, day, perDay } = allowance;
    if (day !== this.day) this.turnTo(day);
    const key = `${tenantQueue.tenantId}/${tenantQueue.channel}`;
    const page = this.pages.get(key) ?? { taken: null, held: 0, isAsking: false };
    this.pages.set(key, page);
    // The operator may have lowered the allowance since these were taken.
    const used = (page.taken ?? 0) - page.held;
    const left = Math.max(0, Math.min(page.held, perDay - used));
    if (left === 0 && !page.isAsking && (page.taken === null || page.taken < perDay)) {
      void this.ask(page, allowance, onMore);
    }
    return left;
  }

  /** Uses one of the units that `left` has just returned. */
  take({ tenantId, channel }: TenantQueue): AllowanceUnit {
    const page = this.pages.get(`${tenantId}/${channel}`);
    if (page === undefined || page.held < 1)
      throw new Error("broken invariant: a delivery has its unit before it starts");
    page.held -= 1;
    // On another day this page is no longer read.
    return { giveBack: () => (page.held += 1) };
  }

  private turnTo(day: number): void {
    this.day = day;
    this.pages.clear();
  }

  private async ask(page: Page, { tenantQueue, day, perDay }: DayAllowance, onMore: () => void): Promise<void> {
    const { queue, lease, clock, telemetry } = this.options;
    page.isAsking = true;
    const known = page.taken ?? 0;
    const wanted = page.taken === null ? 0 : computePieceSize(perDay);
    const end = () => {
      page.isAsking = false;
      onMore();
    };
    try {
      const taken = await queue.allow(lease, { tenantQueue, day, allowance: perDay, known, wanted });
      // The term is over; the next pull or settlement finds out.
      if (taken === FENCED) return;
      if (page.taken !== null) page.held += taken - known;
      page.taken = taken;
    } catch (error) {
      telemetry.count("queue_calls_failed", { call: "allow" });
      logFailure(telemetry, "reserving units of the daily allowance failed and is repeated", error);
      clock.setTimer(engineLimits.queueRetry.maxMs, end);
      return;
    }
    end();
  }
}

/** A tenant queue's allowance on one day. */
interface Page {
  /** The day's count in the queue's last answer; null before the first answer. */
  taken: number | null;
  /** Counted by this term but not used. */
  held: number;
  isAsking: boolean;
}

function computePieceSize(perDay: number): number {
  return Math.min(engineLimits.allowancePieceMax, Math.ceil(perDay / 50));
}
