import type { SimClock } from "./sim-clock.ts";

const LINES_KEPT = 400;

/**
 * The run's history, as a hash that two equal runs share, and as the last lines of text for whoever looks into a
 * failure.
 */
export class Trace {
  private readonly lines: string[] = [];
  private low = 0x811c9dc5 | 0;
  private high = 0x9e3779b9 | 0;

  constructor(private readonly clock: SimClock) {}

  note(what: string, who = "", detail = ""): void {
    const line = `${this.clock.nowMs} ${who} ${what} ${detail}`;
    for (let i = 0; i < line.length; i += 1) {
      const char = line.charCodeAt(i);
      this.low = Math.imul(this.low ^ char, 0x01000193);
      this.high = Math.imul(this.high ^ char, 0x85ebca6b) ^ (this.high >>> 13);
    }
    this.lines.push(line);
    if (this.lines.length > 2 * LINES_KEPT) this.lines.splice(0, LINES_KEPT);
  }

  hash(): string {
    return [this.high, this.low].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("");
  }

  lastLines(count: number): string {
    return this.lines.slice(-count).join("\n");
  }
}
