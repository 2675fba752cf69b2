import type { Config } from "../config/config.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";

/** What this process, which has a name beside others of its start, says, in the form that whoever looks at standard error can read. */
export function processTelemetry({ logLevel }: Config, name?: string): ProcessTelemetry {
  const named = name === undefined ? {} : { process: name };
  return new ProcessTelemetry({ level: logLevel, isTerminal: process.stderr.isTTY === true, ...named });
}
