import { EVENT_IDS_PER_MS, type EventType } from "../domain/event.ts";
import type { ChannelName } from "../domain/job.ts";
import { remember } from "../domain/remember.ts";

/** Pages of one tenant with the same filter are alike. */
export interface PageKind {
  readonly tenantId: string;
  readonly channel: ChannelName | null;
  readonly type: EventType | null;
}

/** The span for a kind of page that nothing is known about. */
const FIRST_SPAN = 24 * 60 * 60 * 1000 * EVENT_IDS_PER_MS;
const SHORTEST_SPAN = 60 * 60 * 1000 * EVENT_IDS_PER_MS;
const KINDS_MAX = 10_000;

/**
 * Remembers how far back a page reached, by kind of page. A page opens every part of the table that its range touches and pays
 * for each. Parts are slices of time, so a range hardly longer than the page touches few of them.
 *
 * These are only estimates: a reader that finds too few rows goes on with older ones.
 */
export class PageSpans {
  /** Least recently used first. */
  private readonly spans = new Map<string, number>();

  /** How many event ids below the upper end most likely hold a page of this kind. */
  of(kind: PageKind): number {
    return this.spans.get(keyOf(kind)) ?? FIRST_SPAN;
  }

  /** Records that a page reached, or would have reached, this far below its upper end. */
  learn(kind: PageKind, reached: number): void {
    remember(this.spans, { key: keyOf(kind), value: Math.max(SHORTEST_SPAN, 2 * reached), max: KINDS_MAX });
  }
}

function keyOf({ tenantId, channel, type }: PageKind): string {
  return `${tenantId} ${channel ?? ""} ${type ?? ""}`;
}
