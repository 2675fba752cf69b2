import type { Server } from "./network.ts";
import type { SimClock } from "./sim-clock.ts";

/** Shorter than what a watcher takes for a silence. */
const SHORT_MS = 2_500;

/** For how long a server has left all calls unanswered, because it is down or unreachable. */
export class Outages {
  private sumMs = 0;
  private sinceMs: number | null = null;
  private silentUntilMs = 0;

  constructor(
    private readonly clock: SimClock,
    private readonly server: Server,
  ) {}

  /** All outages so far together, but for the short ones. */
  awayMs(): number {
    return this.sumMs + this.currentMs();
  }

  /** With the one that goes on now, however long it may become. */
  awayMsSoFar(): number {
    return this.sumMs + (this.sinceMs === null ? 0 : this.clock.nowMs - this.sinceMs);
  }

  silent(forMs: number): void {
    this.silentUntilMs = Math.max(this.silentUntilMs, this.clock.nowMs + forMs);
    this.look();
    this.clock.at(forMs, () => this.look());
  }

  /** Something of it may have changed. */
  look(): void {
    const isAway = !this.server.isUp || this.clock.nowMs < this.silentUntilMs;
    if (isAway) this.sinceMs ??= this.clock.nowMs;
    else {
      this.sumMs += this.currentMs();
      this.sinceMs = null;
    }
  }

  end(): void {
    this.silentUntilMs = 0;
    this.look();
  }

  private currentMs(): number {
    const lengthMs = this.sinceMs === null ? 0 : this.clock.nowMs - this.sinceMs;
    return lengthMs > SHORT_MS ? lengthMs : 0;
  }
}
