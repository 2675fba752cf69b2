import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from "prom-client";

/** All metrics of one process, as data. */
export type MetricsParts = readonly MetricObjectWithValues<MetricValue<string>>[];

/** How to combine gauges that are not amounts; all others are summed, like counters and histograms. */
const NOT_SUMMED: readonly (readonly [RegExp, "min" | "max" | "first"])[] = [
  // A part that one process finds away deserves attention.
  [/_up$/, "min"],
  [/_expiry_(days|seconds)$/, "min"],
  // Several processes may find the same relay away, and all measure the same lag.
  [/^waybill_relay_open$/, "max"],
  [/_lag(_|$)/, "max"],
  [/^waybill_clocks_apart_seconds$/, "max"],
  [/_start_time_seconds$/, "first"],
];

/** The library writes `Nan`, which Prometheus forgives and other readers do not (exposition format 0.0.4: `NaN`). */
export function expositionText(text: string): string {
  return text.replace(/ Nan$/gm, " NaN");
}

/** One text for all processes; the main one's parts come first. */
export async function summedMetrics(parts: readonly MetricsParts[]): Promise<string> {
  return expositionText(await sumOf(parts).metrics());
}

/** What remains of processes that have ended: counts and durations, without which the sums would fall. */
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
