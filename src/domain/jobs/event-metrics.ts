import { EVENT_TYPES } from "./event.ts";
import type { ChannelName } from "./job.ts";

export const METRIC_INTERVALS = ["hour", "day", "week", "month"] as const;
export type MetricInterval = (typeof METRIC_INTERVALS)[number];

/** What of a message its events can be summed by. All but the channel are looked up in the jobs. */
export const METRIC_GROUPS = ["channel", "domain", "template", "tag"] as const;
export type MetricGroup = (typeof METRIC_GROUPS)[number];

/** What is counted: events by type, of which those by machines (`isByMachine`) are counts of their own. */
export const COUNTS = [...EVENT_TYPES, "machine_opened", "machine_clicked"] as const;
export type Count = (typeof COUNTS)[number];

/** How many events of each type a tenant had on some days. */
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
  /** "": it has none, or its job is not known any more; null: there are no groups. */
  readonly group: string | null;
  readonly events: Readonly<Record<Count, number>>;
}

export interface EventMetrics {
  /** Whether the sums answer it; otherwise the events have to be read. */
  isFromSums(query: MetricsQuery): boolean;
  /**
   * By time and group. `too_many_events`: so many that they are not read; `too_many_rows`: the answer would be too long.
   * Rejects with `UnavailableError`.
   */
  metrics(query: MetricsQuery): Promise<readonly MetricRow[] | "too_many_events" | "too_many_rows">;
}
