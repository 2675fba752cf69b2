import type { Clock } from "../../../domain/clock.ts";
import type { DeviceComplaint } from "../../../domain/jobs/report.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { walletLimits } from "../limits.ts";

export interface DeviceLogPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How many of the latest complaints can be read back. */
  readonly keptMax: number;
}

/**
 * Devices' complaints about this service (Apple's "Logging Errors"). Apple's devices send no token here, so anyone can
 * write: lines are few, short and without control characters, and any excess is counted but not logged. A stranger who
 * writes constantly adds some 40 MB a day to the operator's log.
 */
export class DeviceLog {
  /** Oldest first. */
  private readonly kept: DeviceComplaint[] = [];
  private minute = -1;
  private linesInMinute = 0;

  constructor(private readonly ports: DeviceLogPorts) {}

  take(lines: readonly string[]): void {
    const { telemetry } = this.ports;
    const written = Math.min(lines.length, walletLimits.deviceLogLinesMax, this.room());
    this.linesInMinute += written;
    for (const line of lines.slice(0, written)) this.write(readable(line.slice(0, walletLimits.deviceLogLineCharsMax)));
    telemetry.count("device_log_lines", { result: "kept" }, written);
    telemetry.count("device_log_lines", { result: "dropped" }, lines.length - written);
  }

  /** Returns the latest complaints, newest first. */
  latest(limit: number): readonly DeviceComplaint[] {
    return this.kept.slice(-limit).reverse();
  }

  private room(): number {
    const minute = Math.floor(this.ports.clock.monotonicMs() / 60_000);
    if (minute !== this.minute) this.linesInMinute = 0;
    this.minute = minute;
    return walletLimits.deviceLogLinesPerMinute - this.linesInMinute;
  }

  private write(message: string): void {
    const { clock, telemetry, keptMax } = this.ports;
    telemetry.log("warn", "a device complained", { message });
    this.kept.push({ logged_at: new Date(clock.nowMs()).toISOString(), message });
    if (this.kept.length > keptMax) this.kept.shift();
  }
}

/**
 * Removes characters that a terminal would act on or a reader could take for a new line, and devices' ids, with which
 * anyone can query the passes on the device.
 */
function readable(line: string): string {
  return line.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").replace(/\b[0-9a-f]{32,}\b/gi, "(id)");
}
