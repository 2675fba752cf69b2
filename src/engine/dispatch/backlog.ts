import type { Clock } from "../../domain/clock.ts";
import { limits } from "../../domain/limits.ts";

/** Payloads of one tenant and channel that this process holds. */
const TENANT_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes that one pull asks for, all tenant queues together. */
export const PULL_BYTES_MAX = 1024 * 1024;
/** Pulls in flight at one time in the process, each with its bytes. */
const PULLS_MAX = 8;
/** Of these, pulls of owners whose last one got no answer. */
const SUSPECTS_MAX = 2;
/** A pull that takes longer gives its place to another one: its node may be hung, and others are not. */
const STALL_MS = 500;
/** So many do. Were all of them answered after all, each would bring its bytes. */
const STALLED_MAX = 24;

/** A pull's place among the process's few. */
export interface PullPlace {
  /** Safe to repeat. */
  end(): void;
}

/**
 * The bytes of payloads that the process holds, from their pull until their outcome is on disk, and those that pulls may
 * add.
 *
 * A tenant may hold no more than a quarter of what is left of the process's share (dynamic thresholds, Choudhury and
 * Hahne, 1998): however many tenants have queues that do not move, there is room for those that do.
 *
 * A cluster's node that hangs holds each of its pulls up until their deadline. So these keep their places for a moment
 * only, and their owners have few of them after that: owners at other nodes go on.
 */
export class Backlog {
  private held = 0;
  /** Pulls in flight. Those that are stalled take no place. */
  private readonly pulls = { sound: 0, suspect: 0, stalled: 0 };
  private readonly waiting = new Set<() => void>();
  private readonly suspectsWaiting = new Set<() => void>();

  constructor(private readonly clock: Clock) {}

  /** Bytes that are held. */
  get bytes(): number {
    return this.held;
  }

  /** More are held, or (negative) fewer. */
  add(bytes: number): void {
    this.held += bytes;
  }

  /** Bytes that somebody who holds `own` of them may ask for now; 0 or less: none. */
  roomFor(own: number): number {
    return Math.min(TENANT_BYTES_MAX, (limits.backlogBytesMax - this.held) / 4) - own;
  }

  /**
   * Waits for one of the process's few pulls, to be ended by its caller. Null: `signal` aborted first. Who is suspect, since
   * its last pull got no answer, has few of them, and everybody else goes before it.
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
