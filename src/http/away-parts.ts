import type { Clock } from "../domain/clock.ts";
import type { Health } from "../domain/health.ts";
import type { AwayPart } from "./readiness.ts";

/** A relay that takes no mail at the moment. */
interface AwayRelay {
  readonly relay: string;
  readonly isOwn: boolean;
  readonly forMs: number;
  readonly why: string;
}

/** Unavailable parts that do not stop the work, for `/ready`. Each writes its own logs and metrics. */
export class AwayParts {
  private readonly sources: (() => readonly AwayPart[])[] = [];

  constructor(private readonly clock: Clock) {}

  list(): readonly AwayPart[] {
    return this.sources.flatMap((source) => source());
  }

  addPart(part: string, health: () => Health): void {
    this.sources.push(() => {
      const { up, sinceMs } = health();
      return up ? [] : [{ part, sinceMs: sinceMs ?? this.clock.nowMs() }];
    });
  }

  /** Tenants' own relays are counted but not named, because strangers can read the answer. */
  addRelays(dispatcher: { away(): readonly AwayRelay[] }): void {
    this.sources.push(() => {
      const away = dispatcher.away();
      const own = away.filter(({ isOwn }) => isOwn);
      const shared = away.filter(({ isOwn }) => !isOwn);
      const nowMs = this.clock.nowMs();
      const named = shared.map(({ relay, forMs, why }) => ({ part: `relay ${relay}`, sinceMs: nowMs - forMs, why }));
      if (own.length === 0) return named;
      const longestMs = Math.max(...own.map(({ forMs }) => forMs));
      return [...named, { part: `relays of tenants' own: ${own.length}`, sinceMs: nowMs - longestMs }];
    });
  }
}
