import type { Clock, Timer } from "../domain/clock.ts";

/** A body that brings no bytes for this long is given up, */
export const BODY_STALL_MS = 10_000;
/** as is one that takes longer than this plus the time its bytes need at the slowest tolerated rate. */
export const BODY_BASE_MS = 30_000;
export const BODY_BYTES_PER_MS_MIN = 64;
/** How often all bodies are checked, with one timer. */
const LOOK_MS = 500;

/** One body being received. */
export interface BodyWatch {
  /** Whether it was given up. */
  readonly isLate: boolean;
  /** This many more bytes have arrived. */
  progressed(bytes: number): void;
  /** The body has arrived, or is no longer wanted. */
  end(): void;
}

interface Watched {
  readonly startedMs: number;
  /** Null if no length is declared; then the bytes received so far count. */
  readonly declared: number | null;
  received: number;
  progressedMs: number;
  isLate: boolean;
  giveUp(): void;
}

/** Gives up on bodies that arrive too slowly, so no caller can hold room without sending. */
export class SlowBodies {
  private readonly watched = new Set<Watched>();
  private timer: Timer | null = null;

  constructor(private readonly clock: Clock) {}

  /** `giveUp` is called once, when the body is late. */
  watch(declared: number | null, giveUp: () => void): BodyWatch {
    const nowMs = this.clock.monotonicMs();
    const body: Watched = { startedMs: nowMs, declared, received: 0, progressedMs: nowMs, isLate: false, giveUp };
    this.watched.add(body);
    this.timer ??= this.clock.setTimer(LOOK_MS, () => this.look());
    return {
      get isLate() {
        return body.isLate;
      },
      progressed: (bytes) => {
        body.received += bytes;
        body.progressedMs = this.clock.monotonicMs();
      },
      end: () => this.watched.delete(body),
    };
  }

  private look(): void {
    const nowMs = this.clock.monotonicMs();
    for (const body of this.watched) {
      if (!isLate(body, nowMs)) continue;
      this.watched.delete(body);
      body.isLate = true;
      body.giveUp();
    }
    this.timer = this.watched.size === 0 ? null : this.clock.setTimer(LOOK_MS, () => this.look());
  }
}

function isLate({ startedMs, progressedMs, declared, received }: Watched, nowMs: number): boolean {
  if (nowMs - progressedMs > BODY_STALL_MS) return true;
  return nowMs - startedMs > BODY_BASE_MS + (declared ?? received) / BODY_BYTES_PER_MS_MIN;
}
