import { remember } from "../domain/remember.ts";

/**
 * Remembers for a short while which names were not found, so a repeated name costs no lookup. Bounded: the oldest are forgotten
 * first, because hostile callers never repeat a name.
 */
export class RecentMisses {
  /** Oldest first: all are kept equally long. */
  private readonly untilMs = new Map<string, number>();

  constructor(
    private readonly keptMs: number,
    private readonly namesMax: number,
  ) {}

  has(name: string, nowMs: number): boolean {
    const until = this.untilMs.get(name);
    return until !== undefined && nowMs < until;
  }

  add(name: string, nowMs: number): void {
    const isOver = (until: number) => until <= nowMs;
    remember(this.untilMs, { key: name, value: nowMs + this.keptMs, max: this.namesMax, isOver });
  }

  delete(name: string): void {
    this.untilMs.delete(name);
  }

  clear(): void {
    this.untilMs.clear();
  }
}
