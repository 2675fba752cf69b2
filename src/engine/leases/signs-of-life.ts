import { limits } from "../../domain/limits.ts";

/**
 * Longest time from sending one answered read to the answer of the next read in the same row. After a longer gap the
 * store may have been silent for longer than a hiccup.
 */
const LOOK_GAP_MS_MAX = 2.5 * limits.leaseCompeteMs;

interface Sign<S> {
  state: S;
  /** When the state was first read in an unbroken row of reads (monotonic). */
  sinceMs: number;
  last: Look;
}

/** A read that was answered (monotonic). */
export interface Look {
  readonly askedAtMs: number;
  readonly heardAtMs: number;
}

/**
 * Watches states that their owners change for as long as they live (a lease's renewals, a process's heartbeats), on the
 * watcher's own monotonic clock. An owner is silent when its state has stayed the same for a whole `leaseTtlMs` of
 * reads that were all answered: while the store itself is silent, or the watcher is paused, no owner counts as silent.
 */
export class SignsOfLife<K, S> {
  private readonly signs = new Map<K, Sign<S>>();

  constructor(private readonly isSame: (a: S, b: S) => boolean) {}

  /** Records that the store answered with this state. */
  seen(key: K, state: S, look: Look): void {
    const { heardAtMs } = look;
    const sign = this.signs.get(key);
    if (sign === undefined) this.signs.set(key, { state, sinceMs: heardAtMs, last: look });
    else {
      const gapMs = heardAtMs - sign.last.askedAtMs;
      if (gapMs > LOOK_GAP_MS_MAX || !this.isSame(sign.state, state)) sign.sinceMs = heardAtMs;
      sign.state = state;
      sign.last = look;
    }
  }

  /** Records that the store answered that the state is gone. */
  gone(key: K): void {
    this.signs.delete(key);
  }

  isSilent(key: K): boolean {
    const sign = this.signs.get(key);
    return sign !== undefined && sign.last.heardAtMs - sign.sinceMs >= limits.leaseTtlMs;
  }

  keys(): Iterable<K> {
    return this.signs.keys();
  }
}
