import type { Clock } from "../../domain/clock.ts";
import { engineLimits } from "../limits.ts";

/** Bytes of payloads that this process holds for one tenant and channel. */
const TENANT_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes that one pull requests across all tenant queues. */
export const PULL_BYTES_MAX = 1024 * 1024;
/** Pulls in flight at one time in the process, each with its bytes. */
const PULLS_MAX = 8;
/** How many of them may belong to owners whose last pull got no answer. */
const SUSPECTS_MAX = 2;
/** A pull that takes longer loses its slot: its node may hang while other nodes answer. */
const STALL_MS = 500;
/** Limit on stalled pulls. If all of them were answered after all, each would add its bytes. */
const STALLED_MAX = 24;

/** One of the process's few pull slots. */
export interface PullPlace {
  /** Safe to repeat. */
  end(): void;
}

/**
 * Counts the bytes of payloads that the process has in memory, from their pull until their outcome is on disk, and
 * limits the bytes that pulls may add.
 *
 * A tenant may have at most a quarter of the process's remaining share (dynamic thresholds, Choudhury and Hahne, 1998):
 * however many tenants have queues that are stuck, the others still get memory.
 *
 * When a cluster node hangs, each pull to it lasts until its deadline. Such a pull keeps its slot only for a moment,
 * and its owner then gets few slots, which keeps owners on other nodes going.
 */
export class Backlog {
  private held = 0;
  /** Pulls in flight. Stalled pulls take no slot. */
  private readonly pulls = { sound: 0, suspect: 0, stalled: 0 };
  private readonly waiting = new Set<() => void>();
  private readonly suspectsWaiting = new Set<() => void>();

  constructor(private readonly clock: Clock) {}

  get bytes(): number {
    return this.held;
  }

  /** Adds bytes, or removes them if negative. */
  add(bytes: number): void {
    this.held += bytes;
  }

  /** Returns the bytes that an owner of `own` bytes may request now; 0 or less: none. */
  roomFor(own: number): number {
    return Math.min(TENANT_BYTES_MAX, (engineLimits.backlogBytesMax - this.held) / 4) - own;
  }

  /**
   * Waits for one of the process's few pull slots; the caller ends the pull. Null: `signal` aborted first. An owner
   * whose last pull got no answer is suspect: it gets few slots, and all other owners go first.
   */
  async beginPull(signal: AbortSignal, isSuspect = false): Promise<PullPlace | null> {
    const waiting = isSuspect ? this.suspectsWaiting : this.waiting;
    while (!this.hasPlace(isSuspect) && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const go = () => {
          waiting.delete(go);
          signal.removeEventListener("abort", go);
          resolve();
        };
        waiting.add(go);
        signal.addEventListener("abort", go, { once: true });
      });
    }
    if (signal.aborted) {
      this.wakeNext();
      return null;
    }
    return this.take(isSuspect);
  }

  private take(isSuspect: boolean): PullPlace {
    const kind = isSuspect ? "suspect" : "sound";
    this.pulls[kind] += 1;
    let at: keyof typeof this.pulls | null = kind;
    const stall = this.clock.setTimer(STALL_MS, () => {
      if (at !== "sound" || this.pulls.stalled >= STALLED_MAX) return;
      this.pulls.sound -= 1;
      this.pulls.stalled += 1;
      at = "stalled";
      this.wakeNext();
    });
    return {
      end: () => {
        if (at === null) return;
        stall.cancel();
        this.pulls[at] -= 1;
        at = null;
        this.wakeNext();
      },
    };
  }

  private hasPlace(isSuspect: boolean): boolean {
    const { sound, suspect } = this.pulls;
    return sound + suspect < PULLS_MAX && (!isSuspect || suspect < SUSPECTS_MAX);
  }

  private wakeNext(): void {
    if (this.hasPlace(false)) for (const go of this.waiting) return go();
    if (this.hasPlace(true)) for (const go of this.suspectsWaiting) return go();
  }
}
