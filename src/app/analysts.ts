import type { Config } from "../config/config.ts";
import type { ClickHouseAddress } from "../domain/jobs/event-store.ts";
import { openListener } from "../runtime/open-listener.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";

interface Parts {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
}

/** Opens the embedded event store to analysts' tools. Returns the address at which they reach it; null: not configured. */
export async function startAnalysts(
  { config, telemetry }: Parts,
  shutdown: Shutdown,
  server: ClickHouseAddress | null,
): Promise<string | null> {
  const { clickhouseHttpPort: port, clickhouseHttpPassword: password, clickhouseDatabase: database } = config;
  if (port === 0 || password === null) return null;
  if (server === null) {
    telemetry.log("warn", "CLICKHOUSE_HTTP_PORT is set and has no effect: there is no embedded ClickHouse here");
    return null;
  }
  const { serveClickHouseHttp } = await import("../storage/clickhouse/clickhouse-http.ts");
  const at = { host: "127.0.0.1", hostSetting: null, port, portSetting: "CLICKHOUSE_HTTP_PORT" };
  const analysts = await openListener(at, () => serveClickHouseHttp({ server, database, port, password, telemetry }));
  shutdown.add("clients", "clickhouse http", () => analysts.stop());
  return analysts.url;
}
