import type { Clock } from "../domain/clock.ts";

const MIB = 1024 * 1024;

/** Large payloads that are being delivered. */
export const ROOM_BYTES = 64 * MIB;
/** Of them, those of one tenant. */
export const SHARE_BYTES = 16 * MIB;
/** Of it, what only tenants that hold nothing may take. */
const RESERVE_BYTES = 16 * MIB;
/** How long a delivery waits for room; after that its job does. */
export const ROOM_WAIT_MS = 5_000;

interface Waiting {
  readonly tenantId: string;
  readonly bytes: number;
  begin(): void;
}

/**
 * Room in memory for large payloads.
 *
 * R1. All that have room are together at most `ROOM_BYTES`, those of a tenant at most `SHARE_BYTES`; a payload that is
 *     larger has room when there is no other. R2. Whoever came first is let in first, but one that does not fit keeps nobody
 *     else waiting. R3. A tenant that holds something may hold no more than half of what the others leave outside the
 *     reserve: tenants whose relays are slow leave room for the first payload of one that holds nothing.
 */
export class PayloadRoom {
  private taken = 0;
  private readonly shares = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly clock: Clock) {}

  /** Whether there is room, now or soon. It has to be given back. */
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
