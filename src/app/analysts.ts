import type { Config } from "../config/config.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import type { Shutdown } from "./shutdown.ts";
import { openToAnalysts } from "./stores.ts";

interface Parts {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
}

/** Returns the address at which analysts' tools reach this process's event store, or null. */
export async function startAnalysts({ config, telemetry }: Parts, shutdown: Shutdown): Promise<string | null> {
  const analysts = await openToAnalysts(config, telemetry);
  if (analysts !== null) shutdown.add("clients", "clickhouse http", () => analysts.stop());
  return analysts?.url ?? null;
}
