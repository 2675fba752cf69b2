import type { Clock } from "../../domain/clock.ts";

const MIB = 1024 * 1024;

/** For all large payloads being delivered. */
export const ROOM_BYTES = 64 * MIB;
/** For those of one tenant. */
export const SHARE_BYTES = 16 * MIB;
/** The part of the memory budget reserved for tenants that hold none of it. */
const RESERVE_BYTES = 16 * MIB;
/** How long a delivery waits for room before its job is rescheduled. */
export const ROOM_WAIT_MS = 5_000;

interface Waiting {
  readonly tenantId: string;
  readonly bytes: number;
  begin(): void;
}

/**
 * Room in memory for large payloads.
 *
 * R1. All admitted payloads together take at most `ROOM_BYTES`, those of one tenant at most `SHARE_BYTES`; a larger payload is
 *     admitted when there is no other.
 * R2. Payloads are admitted in order of arrival, but one that does not fit blocks no other.
 * R3. A tenant that already holds room may hold at most half of what the others leave outside the reserve: tenants with slow
 *     relays leave room for another tenant's first payload.
 */
export class PayloadRoom {
  private taken = 0;
  private readonly shares = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly clock: Clock) {}

  /** Whether there is room now or soon. Room taken must be given back. */
  take(tenantId: string, bytes: number, signal: AbortSignal): Promise<boolean> {
    if (this.fits(tenantId, bytes)) {
      this.add(tenantId, bytes);
      return Promise.resolve(true);
    }
    if (signal.aborted) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = (isIn: boolean) => {
      timer.cancel();
      signal.removeEventListener("abort", giveUp);
      this.waiting.delete(waiting);
      if (isIn) this.add(tenantId, bytes);
      resolve(isIn);
    };
    const giveUp = () => end(false);
    const waiting = { tenantId, bytes, begin: () => end(true) };
    const timer = this.clock.setTimer(ROOM_WAIT_MS, giveUp);
    signal.addEventListener("abort", giveUp);
    this.waiting.add(waiting);
    return promise;
  }

  give(tenantId: string, bytes: number): void {
    this.add(tenantId, -bytes);
    for (const next of this.waiting) if (this.fits(next.tenantId, next.bytes)) next.begin();
  }

  private fits(tenantId: string, bytes: number): boolean {
    const share = this.shares.get(tenantId) ?? 0;
    const left = ROOM_BYTES - RESERVE_BYTES - (this.taken - share);
    if (share > 0 && share + bytes > Math.min(SHARE_BYTES, left / 2)) return false;
    return this.taken === 0 || this.taken + bytes <= ROOM_BYTES;
  }

  private add(tenantId: string, bytes: number): void {
    this.taken += bytes;
    const share = (this.shares.get(tenantId) ?? 0) + bytes;
    if (share > 0) this.shares.set(tenantId, share);
    else this.shares.delete(tenantId);
  }
}
