import { limits } from "../core/limits.ts";

/** Payloads of one tenant and channel that this process holds. */
const TENANT_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes that one pull asks for, all tenant queues together. */
export const PULL_BYTES_MAX = 1024 * 1024;
/** Pulls in flight at one time in the process, each with its bytes. */
const PULLS_MAX = 8;

/**
 * The bytes of payloads that the process holds, from their pull until their outcome is on disk, and those that pulls may
 * add.
 *
 * A tenant may hold no more than a quarter of what is left of the process's share (dynamic thresholds, Choudhury and
 * Hahne, 1998): however many tenants have queues that do not move, there is room for those that do.
 */
export class Backlog {
  private held = 0;
  private pulls = 0;
  private readonly waiting = new Set<() => void>();

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

  /** Waits for one of the process's few pulls. False: `signal` aborted first. It is given back by `endPull`. */
  async beginPull(signal: AbortSignal): Promise<boolean> {
    while (this.pulls >= PULLS_MAX && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const go = () => {
          this.waiting.delete(go);
          signal.removeEventListener("abort", go);
          resolve();
        };
        this.waiting.add(go);
        signal.addEventListener("abort", go, { once: true });
      });
    }
    if (signal.aborted) {
      this.wakeNext();
      return false;
    }
    this.pulls += 1;
    return true;
  }

  endPull(): void {
    this.pulls -= 1;
    this.wakeNext();
  }

  private wakeNext(): void {
    if (this.pulls >= PULLS_MAX) return;
    for (const go of this.waiting) return go();
  }
}
