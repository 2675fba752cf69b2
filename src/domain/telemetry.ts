import { isOutage } from "./errors.ts";
import type { Json } from "./texts/json.ts";

export type Labels = Readonly<Record<string, string>>;

/** Logs and metrics of the program. Names are Prometheus names without the `waybill_` prefix. */
export interface Telemetry {
  count(name: string, labels?: Labels, by?: number): void;
  /** Sets a value that goes up and down. */
  gauge(name: string, value: number, labels?: Labels): void;
  /** Adds a duration, in seconds, to a histogram. */
  time(name: string, seconds: number, labels?: Labels): void;
  log(level: "debug" | "info" | "warn" | "error", message: string, fields?: Readonly<Record<string, Json>>): void;
}

/** Logs what a call failed with: at `warn` in an outage, which ends by itself, and otherwise at `error`. */
export function logFailure(
  telemetry: Pick<Telemetry, "log">,
  message: string,
  error: unknown,
  fields: Readonly<Record<string, Json>> = {},
): void {
  telemetry.log(isOutage(error) ? "warn" : "error", message, { ...fields, error: String(error) });
}

/** One value of a metric and its labels. */
export type Series = readonly [Labels, number];

export interface SeriesGauges {
  /** Replaces all values of a gauge; none: it has no series. */
  series(name: string, values: readonly Series[]): void;
}
