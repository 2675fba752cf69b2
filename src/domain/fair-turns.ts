/** Bounds of work at a time. */
export interface TurnBounds {
  readonly all: number;
  /** Of one tenant, while at least half of all are free; otherwise it has one. */
  readonly tenant: number;
}

/**
 * Lets tenants work in turn. A tenant whose work takes long uses up its own share alone, and while room is short, each has one
 * piece of work at a time.
 */
export class FairTurns {
  /** Ordered by turn; only tenants that wait. */
  private readonly lines = new Map<string, (() => Promise<void>)[]>();
  private readonly busy = new Map<string, number>();
  private running = 0;

  constructor(private readonly bounds: TurnBounds) {}

  /** Runs the work when it is the tenant's turn. The work must not reject. */
  enter(tenantId: string, work: () => Promise<void>): void {
    const line = this.lines.get(tenantId) ?? [];
    line.push(work);
    this.lines.set(tenantId, line);
    this.begin();
  }

  private begin(): void {
    while (this.running < this.bounds.all) {
      const work = this.next();
      if (work === null) return;
      this.running += 1;
      void work();
    }
  }

  private next(): (() => Promise<void>) | null {
    const most = this.running * 2 < this.bounds.all ? this.bounds.tenant : 1;
    for (const [tenantId, line] of this.lines) {
      const busy = this.busy.get(tenantId) ?? 0;
      if (busy >= most) continue;
      const [work] = line.splice(0, 1);
      // Behind all others.
      this.lines.delete(tenantId);
      if (line.length > 0) this.lines.set(tenantId, line);
      if (work === undefined) continue;
      this.busy.set(tenantId, busy + 1);
      return async () => {
        await work();
        this.ended(tenantId);
      };
    }
    return null;
  }

  private ended(tenantId: string): void {
    this.running -= 1;
    const busy = (this.busy.get(tenantId) ?? 1) - 1;
    if (busy === 0) this.busy.delete(tenantId);
    else this.busy.set(tenantId, busy);
    this.begin();
  }
}
