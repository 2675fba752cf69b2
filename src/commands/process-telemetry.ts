import type { Config } from "../config.ts";
import { ProcessTelemetry } from "../telemetry/process-telemetry.ts";

/** What this process says, in the form that whoever looks at standard error can read. */
export function processTelemetry({ logLevel }: Config): ProcessTelemetry {
  return new ProcessTelemetry({ level: logLevel, isTerminal: process.stderr.isTTY === true });
}
