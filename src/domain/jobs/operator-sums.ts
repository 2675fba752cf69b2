import type { EventType } from "./event.ts";
import type { FailureClass } from "./failure-class.ts";
import type { ChannelName } from "./job.ts";

/** From `fromMs`, before `beforeMs` (unix ms). */
export interface TimeRange {
  readonly fromMs: number;
  readonly beforeMs: number;
}

/** A tenant's jobs on a channel that failed, or bounced after they were sent, for the same reason. */
export interface FailureGroup {
  readonly tenantId: string;
  readonly channel: ChannelName;
  readonly type: "failed" | "bounced";
  readonly failureClass: FailureClass;
  /** Each counts once, however many times it failed. */
  readonly jobs: number;
  /** Events `sent` of the tenant on the channel in the hours of the range. */
  readonly sent: number;
  /** The words of the latest one; null: there are none. */
  readonly example: string | null;
  readonly lastAtMs: number;
}

/** The events of all tenants on a channel in a span of time. */
export interface SpanEvents {
  /** Unix ms of the begin of the span. */
  readonly atMs: number;
  readonly channel: ChannelName;
  readonly type: EventType;
  readonly events: number;
}

export type Span = "minute" | "hour" | "day";

/** Sums of all tenants, for operators. Rejects with `UnavailableError`. */
export interface OperatorSums {
  /** Groups the failures of jobs that were accepted in the range: the largest groups first, at most `limit`. */
  failures(range: TimeRange, limit: number): Promise<readonly FailureGroup[]>;
  /** Spans without events are absent. Minutes are kept for three days. */
  spans(range: TimeRange, span: Span): Promise<readonly SpanEvents[]>;
}
