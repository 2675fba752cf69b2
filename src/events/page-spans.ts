import { EVENT_IDS_PER_MS, type EventType } from "../domain/event.ts";
import type { ChannelName } from "../domain/job.ts";
import { remember } from "../domain/remember.ts";

/** Which pages are alike: the same tenant's, with the same filter. */
export interface PageKind {
  readonly tenantId: string;
  readonly channel: ChannelName | null;
  readonly type: EventType | null;
}

/** Where nothing is known of a kind yet. */
const FIRST_SPAN = 24 * 60 * 60 * 1000 * EVENT_IDS_PER_MS;
const SHORTEST_SPAN = 60 * 60 * 1000 * EVENT_IDS_PER_MS;
const KINDS_MAX = 10_000;

/**
 * How far back a page reached, by its kind. A page opens every part of the table that its range touches, and pays for each;
 * parts are slices of time, so a range that is hardly longer than the page needs touches few of them.
 *
 * Estimates only: whatever they are, a reader that finds too little goes on below.
 */
export class PageSpans {
  /** In the order of their last use. */
  private readonly spans = new Map<string, number>();

  /** Event ids below the upper end that hold a page of this kind, most likely. */
  of(kind: PageKind): number {
    return this.spans.get(keyOf(kind)) ?? FIRST_SPAN;
  }

  /** A page reached this far below its upper end, or would have. */
  learn(kind: PageKind, reached: number): void {
    remember(this.spans, { key: keyOf(kind), value: Math.max(SHORTEST_SPAN, 2 * reached), max: KINDS_MAX });
  }
}

function keyOf({ tenantId, channel, type }: PageKind): string {
  return `${tenantId} ${channel ?? ""} ${type ?? ""}`;
}
