import type { Telemetry } from "../../src/domain/telemetry.ts";

/** Stores log lines for tests to inspect, and does not print them. */
export class QuietTelemetry implements Telemetry {
  readonly lines: string[] = [];
  count(): void {}
  gauge(): void {}
  time(): void {}
  log(level: string, message: string): void {
    this.lines.push(`${level}: ${message}`);
  }
}
