import type { Clock } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import type { Telemetry } from "../core/telemetry.ts";

/** What a device complained of. */
export interface DeviceComplaint {
  /** ISO 8601 UTC. */
  readonly logged_at: string;
  readonly message: string;
}

export interface DeviceLogPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How many of the latest complaints can be read again. */
  readonly keptMax: number;
}

/**
 * What devices say about this service (Apple's "Logging Errors"). Anybody can write here, so that lines are cut, and
 * what comes faster than `deviceLogLinesPerSecond` is counted and not written down.
 */
export class DeviceLog {
  /** Oldest first. */
  private readonly kept: DeviceComplaint[] = [];
  private second = -1;
  private linesInSecond = 0;

  constructor(private readonly ports: DeviceLogPorts) {}

  take(lines: readonly string[]): void {
    const { telemetry } = this.ports;
    const written = Math.min(lines.length, limits.deviceLogLinesMax, this.room());
    this.linesInSecond += written;
    for (const line of lines.slice(0, written)) this.write(line.slice(0, limits.deviceLogLineCharsMax));
    telemetry.count("device_log_lines", { result: "kept" }, written);
    telemetry.count("device_log_lines", { result: "dropped" }, lines.length - written);
  }

  /** Newest first. */
  latest(limit: number): readonly DeviceComplaint[] {
    return this.kept.slice(-limit).reverse();
  }

  private room(): number {
    const second = Math.floor(this.ports.clock.monotonicMs() / 1_000);
    if (second !== this.second) this.linesInSecond = 0;
    this.second = second;
    return limits.deviceLogLinesPerSecond - this.linesInSecond;
  }

  private write(message: string): void {
    const { clock, telemetry, keptMax } = this.ports;
    telemetry.log("warn", "a device complained", { message });
    this.kept.push({ logged_at: new Date(clock.nowMs()).toISOString(), message });
    if (this.kept.length > keptMax) this.kept.shift();
  }
}
