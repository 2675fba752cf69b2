import { limits } from "./limits.ts";

/** Longest time between two answered looks that belong together. Longer, and nobody knows what happened in between. */
const LOOK_GAP_MS_MAX = 2.5 * limits.leaseCompeteMs;

interface Sign<S> {
  state: S;
  /** When the state was first seen, in an unbroken row of looks (monotonic). */
  sinceMs: number;
  seenAtMs: number;
}

/**
 * Watches states that their owners change for as long as they live (a lease's renewals, a process's heartbeats), on the
 * watcher's own monotonic clock. An owner is silent when its state has stayed the same for a whole `leaseTtlMs` of looks
 * that were all answered: while the store itself is silent, or the watcher was paused, nobody's silence counts.
 */
export class SignsOfLife<K, S> {
  private readonly signs = new Map<K, Sign<S>>();

  constructor(private readonly isSame: (a: S, b: S) => boolean) {}

  /** The store answered at `nowMs` that this is the state. */
  seen(key: K, state: S, nowMs: number): void {
    const sign = this.signs.get(key);
    if (sign === undefined) this.signs.set(key, { state, sinceMs: nowMs, seenAtMs: nowMs });
    else {
      if (nowMs - sign.seenAtMs > LOOK_GAP_MS_MAX || !this.isSame(sign.state, state)) sign.sinceMs = nowMs;
      sign.state = state;
      sign.seenAtMs = nowMs;
    }
  }

  /** The store answered that there is none. */
  gone(key: K): void {
    this.signs.delete(key);
  }

  isSilent(key: K): boolean {
    const sign = this.signs.get(key);
    return sign !== undefined && sign.seenAtMs - sign.sinceMs >= limits.leaseTtlMs;
  }

  keys(): Iterable<K> {
    return this.signs.keys();
  }
}
