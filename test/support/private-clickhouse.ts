import type { ClickHouseAddress } from "../../src/domain/jobs/event-store.ts";
import { type ClickHouseServer, connectClickHouse } from "../../src/events/clickhouse.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { startClickHouseChild } from "../../src/storage/clickhouse/clickhouse-child.ts";
import { QuietTelemetry } from "./quiet-telemetry.ts";

export interface PrivateClickHouse extends ClickHouseServer {
  readonly address: ClickHouseAddress;
  /** The address for analysts' statements; null: there is none. */
  readonly analysts: ClickHouseAddress | null;
  readonly pid: number;
}

/**
 * A private ClickHouse server on a folder, and clients of it, which `close` ends. `analysed`: the data that analysts
 * may read.
 */
export async function openClickHouse(folder: string, analysed: string | null = null): Promise<PrivateClickHouse> {
  const telemetry = new LoudTelemetry();
  const child = await startClickHouseChild({ folder, analysed, telemetry, clock: systemClock });
  const clients = connectClickHouse(child.address);
  return {
    ...clients,
    address: child.address,
    analysts: child.analysts,
    get pid() {
      return child.pid;
    },
    async close() {
      await clients.close();
      await child.stop();
    },
  };
}

/** Prints errors: a server's own end is seldom the subject of a test. */
class LoudTelemetry extends QuietTelemetry {
  override log(level: string, message: string, fields?: object): void {
    if (level === "error") process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
  }
}
