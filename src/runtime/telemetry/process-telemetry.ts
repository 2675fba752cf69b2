import pino, { type Logger } from "pino";
import pretty from "pino-pretty";
import type { Labels, Series, SeriesGauges, Telemetry } from "../../domain/telemetry.ts";
import type { Json } from "../../domain/texts/json.ts";
import { Metrics } from "./metrics.ts";
import type { MetricsParts } from "./summed-metrics.ts";

type Level = "debug" | "info" | "warn" | "error";

export interface ProcessTelemetryOptions {
  /** `silent` turns logging off. */
  readonly level: Level | "silent";
  /** Writes lines for a person at a terminal instead of JSON. */
  readonly isTerminal: boolean;
  /** Names the process within a start in its log lines; a single process needs no name. */
  readonly process?: string;
}

/** The process's telemetry: log lines on standard error, numbers at `/metrics`. */
export class ProcessTelemetry implements Telemetry, SeriesGauges {
  private readonly metrics = new Metrics();
  private readonly logger: Logger;

  constructor({ level, isTerminal, process }: ProcessTelemetryOptions) {
    // Standard output belongs to the commands' results. Synchronous, because the last lines before an exit are the ones
    // needed.
    const stream = isTerminal
      ? pretty({ ...PRETTY, messageFormat: process === undefined ? false : `[${process}] {msg}` })
      : pino.destination({ dest: 2, sync: true });
    const base = process === undefined ? null : { process };
    this.logger = pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, stream);
  }

  count(name: string, labels: Labels = {}, by = 1): void {
    this.metrics.count(name, labels, by);
  }

  gauge(name: string, value: number, labels: Labels = {}): void {
    this.metrics.gauge(name, value, labels);
  }

  series(name: string, values: readonly Series[]): void {
    this.metrics.series(name, values);
  }

  time(name: string, seconds: number, labels: Labels = {}): void {
    this.metrics.time(name, seconds, labels);
  }

  log(level: Level, message: string, fields: Readonly<Record<string, Json>> = {}): void {
    this.logger[level](fields, message);
  }

  metricsText(): Promise<string> {
    return this.metrics.text();
  }

  /** Returns the same metrics as data, to be summed with those of other processes. */
  metricsParts(): Promise<MetricsParts> {
    return this.metrics.parts();
  }
}

const PRETTY = { destination: 2, sync: true, ignore: "pid,hostname,process", translateTime: "SYS:HH:MM:ss.l" } as const;
