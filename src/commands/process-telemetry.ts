import type { Config } from "../config/config.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";

/** Logs and metrics of this process, in a form that suits standard error. `name` tells apart the processes of one start. */
export function processTelemetry({ logLevel }: Config, name?: string): ProcessTelemetry {
  const named = name === undefined ? {} : { process: name };
  return new ProcessTelemetry({ level: logLevel, isTerminal: process.stderr.isTTY === true, ...named });
}
