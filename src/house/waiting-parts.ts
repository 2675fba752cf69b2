import type { AwayPart } from "../api/readiness.ts";
import type { Health } from "../core/health.ts";

/**
 * Parts without which the process works, while some of its jobs wait: relays, the spam filter, the mail log. They log and
 * measure their outages themselves; readiness only lists them. Filled while the process starts.
 */
export class WaitingParts {
  private readonly sources: (() => readonly AwayPart[])[] = [];

  add(source: () => readonly AwayPart[]): void {
    this.sources.push(source);
  }

  watch(part: string, health: () => Health): void {
    this.add(() => {
      const { up, sinceMs } = health();
      return up || sinceMs === null ? [] : [{ part, sinceMs }];
    });
  }

  away(): readonly AwayPart[] {
    return this.sources.flatMap((source) => source());
  }
}
