import { Counts } from "./counts.ts";

/** Bounds on concurrent work. */
export interface TurnBounds {
  readonly all: number;
  /** Per owner, while at least half of the total is free; otherwise each owner has one. */
  readonly each: number;
}

/**
 * Lets owners (tenants, for example) work in turn. An owner with slow work uses up only its own share, and when
 * capacity is short, each owner has one piece of work at a time.
 */
export class FairTurns {
  /** Ordered by turn; contains only owners that wait. */
  private readonly lines = new Map<string, (() => Promise<void>)[]>();
  private readonly busy = new Counts();
  private running = 0;

  constructor(private readonly bounds: TurnBounds) {}

  /** Runs the work when it is the owner's turn. The work must not reject. */
  enter(owner: string, work: () => Promise<void>): void {
    const line = this.lines.get(owner) ?? [];
    line.push(work);
    this.lines.set(owner, line);
    this.begin();
  }

  /** Runs the work when it is the owner's turn, and returns its result. Rejects as the work does. */
  inTurn<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.enter(owner, async () => {
        try {
          resolve(await work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Returns how many pieces of the owner's work are waiting. */
  waiting(owner: string): number {
    return this.lines.get(owner)?.length ?? 0;
  }

  /** Returns how many pieces of the owner's work are running. */
  working(owner: string): number {
    return this.busy.of(owner);
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
    const most = this.running * 2 < this.bounds.all ? this.bounds.each : 1;
    for (const [owner, line] of this.lines) {
      if (this.busy.of(owner) >= most) continue;
      const [work] = line.splice(0, 1);
      // Behind all others.
      this.lines.delete(owner);
      if (line.length > 0) this.lines.set(owner, line);
      if (work === undefined) continue;
      this.busy.add(owner);
      return async () => {
        await work();
        this.ended(owner);
      };
    }
    return null;
  }

  private ended(owner: string): void {
    this.running -= 1;
    this.busy.remove(owner);
    this.begin();
  }
}
