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
    this.untilMs.delete(name);
    this.untilMs.set(name, nowMs + this.keptMs);
    for (const [oldest, until] of this.untilMs) {
      if (this.untilMs.size <= this.namesMax && nowMs < until) return;
      this.untilMs.delete(oldest);
    }
  }

  delete(name: string): void {
    this.untilMs.delete(name);
  }

  clear(): void {
    this.untilMs.clear();
  }
}
