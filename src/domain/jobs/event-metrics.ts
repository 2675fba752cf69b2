import { EVENT_TYPES } from "./event.ts";
import type { ChannelName } from "./job.ts";

export const METRIC_INTERVALS = ["hour", "day", "week", "month"] as const;
export type MetricInterval = (typeof METRIC_INTERVALS)[number];

/** The members of a message by which its events can be grouped. All but the channel are looked up in the jobs. */
export const METRIC_GROUPS = ["channel", "domain", "template", "tag"] as const;
export type MetricGroup = (typeof METRIC_GROUPS)[number];

/** The names of the counts: events by type, with machines' events (`isByMachine`) as counts of their own. */
export const COUNTS = [...EVENT_TYPES, "machine_opened", "machine_clicked"] as const;
export type Count = (typeof COUNTS)[number];

/** A query for the number of a tenant's events of each type over some days. */
export interface MetricsQuery {
  readonly tenantId: string;
  /** Days of the zone, `YYYY-MM-DD`, both inclusive. */
  readonly from: string;
  readonly to: string;
  /** IANA name, as `Intl` writes it. */
  readonly timezone: string;
  /** Whether the zone's clock is whole hours from UTC on those days. */
  readonly isWholeHours: boolean;
  /** Null: all days together. */
  readonly interval: MetricInterval | null;
  /** Null: all messages together. */
  readonly group: MetricGroup | null;
  /** Null: all channels. */
  readonly channel: ChannelName | null;
}

export interface MetricRow {
  /** When the interval begins (unix ms); null: there are no intervals. */
  readonly atMs: number | null;
  /** "": it has none, or its job is no longer known; null: there are no groups. */
  readonly group: string | null;
  readonly events: Readonly<Record<Count, number>>;
}

export interface EventMetrics {
  /** Whether the sums can answer the query; otherwise the events have to be read. */
  isFromSums(query: MetricsQuery): boolean;
  /**
   * Returns rows by time and group. `too_many_events`: too many to read; `too_many_rows`: the answer would be too long.
   * Rejects with `UnavailableError`.
   */
  metrics(query: MetricsQuery): Promise<readonly MetricRow[] | "too_many_events" | "too_many_rows">;
}
