import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from "prom-client";

/** All metrics of one process, as data. */
export type MetricsParts = readonly MetricObjectWithValues<MetricValue<string>>[];

/** How gauges come together that are no amounts; all others are summed, as counters and histograms are. */
const NOT_SUMMED: readonly (readonly [RegExp, "min" | "max" | "first"])[] = [
  // Where one process finds a part away, it is worth a look.
  [/_up$/, "min"],
  [/_expiry_days$/, "min"],
  // Several processes hold the same relay for away, and look at the same lag.
  [/^waybill_relay_open$/, "max"],
  [/_lag(_|$)/, "max"],
  [/_start_time_seconds$/, "first"],
];

/** One text for all processes; the main one's parts come first. */
export function summedMetrics(parts: readonly MetricsParts[]): Promise<string> {
  return sumOf(parts).metrics();
}

/** What stays of processes that have ended: counts and durations, without which the sums would go back. */
export function departedMetrics(parts: readonly MetricsParts[]): Promise<MetricsParts> {
  const lasting = parts.map((all) => all.filter(({ type }) => LASTING.has(String(type))));
  return sumOf(lasting).getMetricsAsJSON();
}

const LASTING: ReadonlySet<string> = new Set(["counter", "histogram"]);

function sumOf(parts: readonly MetricsParts[]) {
  return AggregatorRegistry.aggregate(
    parts.map((all) => all.map((metric) => ({ ...metric, aggregator: aggregatorOf(metric.name) }))),
  );
}

function aggregatorOf(name: string): "sum" | "min" | "max" | "first" {
  return NOT_SUMMED.find(([names]) => names.test(name))?.[1] ?? "sum";
}
