import type { Telemetry } from "../../src/domain/telemetry.ts";

/** Keeps the log lines, so that a test can look at them, and says nothing. */
export class QuietTelemetry implements Telemetry {
  readonly lines: string[] = [];
  count(): void {}
  gauge(): void {}
  time(): void {}
  log(level: string, message: string): void {
    this.lines.push(`${level}: ${message}`);
  }
}
