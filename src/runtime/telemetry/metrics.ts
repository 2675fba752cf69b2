import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";
import type { Labels, Series } from "../../domain/telemetry.ts";
import { METRIC_HELP } from "./metric-help.ts";
import { expositionText, type MetricsParts } from "./summed-metrics.ts";

const PREFIX = "waybill_";
/** Series per metric. Labels have few values; a bug that creates more must not fill the scraper's memory. */
const SERIES_MAX = 1_000;
/** Seconds, from a script call in a fraction of a millisecond to a provider that takes a minute. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The process's metrics, in Prometheus' text format (exposition format 0.0.4). */
export class Metrics {
  private readonly registry = new Registry();
  private readonly counters = new Map<string, Counter<string>>();
  private readonly gauges = new Map<string, Gauge<string>>();
  private readonly histograms = new Map<string, Histogram<string>>();
  /** The series of each metric with labels, by their values. */
  private readonly known = new Map<string, Set<string>>();

  constructor() {
    // The utilisation of the event loop is always 0 under Bun, so its timer is set to the longest there is.
    collectDefaultMetrics({ register: this.registry, prefix: PREFIX, eventLoopUtilizationTimeout: 2 ** 31 - 1 });
    // Metrics of V8 and libuv, which are zero or made up under Bun.
    for (const { name } of this.registry.getMetricsAsArray()) {
      if (/nodejs_(heap|active|version|gc|eventloop_utilization)/.test(name)) this.registry.removeSingleMetric(name);
    }
  }

  count(name: string, labels: Labels, by: number): void {
    let counter = this.counters.get(name);
    if (counter === undefined) {
      counter = new Counter({ ...this.describe(`${name}_total`, name, labels) });
      this.counters.set(name, counter);
    }
    counter.inc(this.hasRoom(name, labels) ? labels : others(labels), by);
  }

  gauge(name: string, value: number, labels: Labels): void {
    let gauge = this.gauges.get(name);
    if (gauge === undefined) {
      gauge = new Gauge(this.describe(name, name, labels));
      this.gauges.set(name, gauge);
    }
    // Dropped beyond the limit: a shared series would show only the last of many values.
    if (this.hasRoom(name, labels)) gauge.set(labels, value);
  }

  /** Replaces all series. Every value has the same labels. */
  series(name: string, values: readonly Series[]): void {
    // Removes the whole metric: a reset would leave a zero if there are no labels, which would be taken for a
    // measurement.
    this.registry.removeSingleMetric(PREFIX + name);
    this.gauges.delete(name);
    const [first] = values;
    if (first === undefined) return;
    const gauge = new Gauge(this.describe(name, name, first[0]));
    this.gauges.set(name, gauge);
    for (const [labels, value] of values.slice(0, SERIES_MAX)) gauge.set(labels, value);
  }

  time(name: string, seconds: number, labels: Labels): void {
    let histogram = this.histograms.get(name);
    if (histogram === undefined) {
      histogram = new Histogram({ ...this.describe(name, name, labels), buckets: BUCKETS });
      this.histograms.set(name, histogram);
    }
    histogram.observe(this.hasRoom(name, labels) ? labels : others(labels), seconds);
  }

  async text(): Promise<string> {
    return expositionText(await this.registry.metrics());
  }

  /** Returns the input of `summedMetrics`. */
  parts(): Promise<MetricsParts> {
    return this.registry.getMetricsAsJSON();
  }

  /** Whether the metric has a series with these labels, or may have one more. */
  private hasRoom(name: string, labels: Labels): boolean {
    const values = Object.values(labels);
    if (values.length === 0) return true;
    const key = values.join("\0");
    const known = this.known.get(name);
    if (known === undefined) this.known.set(name, new Set([key]));
    else if (!known.has(key) && known.size >= SERIES_MAX) return false;
    else known.add(key);
    return true;
  }

  private describe(fullName: string, name: string, labels: Labels) {
    const help = METRIC_HELP.get(name) ?? name.replaceAll("_", " ");
    return { name: PREFIX + fullName, help, labelNames: Object.keys(labels), registers: [this.registry] };
  }
}

/** Series beyond the limit are counted together. */
function others(labels: Labels): Labels {
  return Object.fromEntries(Object.keys(labels).map((label) => [label, "other"]));
}
