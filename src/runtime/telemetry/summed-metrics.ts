import { type MetricObjectWithValues, type MetricValue, Registry } from "@prometheus-io/client";

/** All metrics of one process, as data. */
export type MetricsParts = readonly MetricObjectWithValues<MetricValue<string>>[];

/** How to combine gauges that are not amounts; all others are summed, like counters and histograms. */
const NOT_SUMMED: readonly (readonly [RegExp, "min" | "max" | "first"])[] = [
  // A dependency that only one process finds away deserves attention, too.
  [/_up$/, "min"],
  [/_expiry_(days|seconds)$/, "min"],
  // Several processes may find the same relay away, and all measure the same lag.
  [/^waybill_relay_open$/, "max"],
  [/_lag(_|$)/, "max"],
  [/^waybill_clocks_apart_seconds$/, "max"],
  [/_start_time_seconds$/, "first"],
];

/** Former names by the present ones. Both are served until 1.2, so that dashboards and rules can be changed in between. */
const FORMER_NAMES: ReadonlyMap<string, string> = new Map([
  ["queue_calls_failed", "journal_calls_failed"],
  ["recorder_queue_calls_failed", "recorder_journal_calls_failed"],
  ["event_rows_recorded", "ledger_rows_recorded"],
  ["event_batches_recorded", "ledger_batches_recorded"],
  ["event_writes_failed", "ledger_writes_failed"],
  ["event_store_up", "ledger_up"],
  ["event_write_seconds", "ledger_write_seconds"],
]);

const RENAMED = new RegExp(
  `^(# (?:HELP|TYPE) )?waybill_(${Array.from(FORMER_NAMES.keys()).join("|")})((?:_total|_bucket|_sum|_count)?[ {].*)$`,
  "gm",
);

/** Formats the text for scrapers: not-a-number in the format's spelling, and renamed metrics under both names. */
export function expositionText(text: string): string {
  // The library writes `Nan`, which Prometheus accepts and other readers do not (exposition format 0.0.4: `NaN`).
  const readable = text.replace(/ Nan$/gm, " NaN");
  const former = Array.from(readable.matchAll(RENAMED), ([, mark = "", name = "", rest = ""]) => {
    const help = mark.includes("HELP") ? rest.replace(/ .*/, ` Former name of waybill_${name}, until 1.2.`) : rest;
    return `${mark}waybill_${FORMER_NAMES.get(name)}${help}\n`;
  });
  return readable + former.join("");
}

/** Formats one text for all processes; the main one's parts come first. */
export async function summedMetrics(parts: readonly MetricsParts[]): Promise<string> {
  return expositionText(await sumParts(parts).metrics());
}

/**
 * Returns the lasting metrics of processes that have ended: counts and durations, without which the sums would fall.
 */
export function departedMetrics(parts: readonly MetricsParts[]): Promise<MetricsParts> {
  const lasting = parts.map((all) => all.filter(({ type }) => LASTING.has(String(type))));
  return sumParts(lasting).getMetricsAsJSON();
}

const LASTING: ReadonlySet<string> = new Set(["counter", "histogram"]);

function sumParts(parts: readonly MetricsParts[]) {
  return Registry.aggregate(
    parts.map((all) => all.map((metric) => ({ ...metric, aggregator: chooseAggregator(metric.name) }))),
  );
}

function chooseAggregator(name: string): "sum" | "min" | "max" | "first" {
  return NOT_SUMMED.find(([names]) => names.test(name))?.[1] ?? "sum";
}
