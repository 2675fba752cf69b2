import type { ClickHouse } from "../clickhouse.ts";
import { selectSettings } from "../statement-settings.ts";
import { type EventStoreTarget, localName, onCluster } from "./table.ts";

const LOOK_TIMEOUT_MS = 60_000;

/** A change to a table. */
export interface Alteration {
  readonly of: EventStoreTarget;
  readonly table: string;
  /** The text after `ALTER TABLE <name>`. */
  readonly change: string;
  /** Whether a table with this engine (`engine_full` in `system.tables`) has it already. */
  isIn(engine: string): boolean;
}

/**
 * Alters only the tables that lack the change: an ALTER rewrites the metadata of every part. Rejects with `TransportError` or
 * `UnavailableError`, and can be repeated.
 */
export async function alterTables(clickhouse: ClickHouse, alterations: readonly Alteration[]): Promise<void> {
  const [first] = alterations;
  if (first === undefined) return;
  const databases = Array.from(new Set(alterations.map(({ of }) => `'${of.database}'`))).join(", ");
  const rows = await clickhouse.rows(
    `SELECT concat(database, '.', name), engine_full FROM system.tables WHERE database IN (${databases}) SETTINGS ${selectSettings(first.of, LOOK_TIMEOUT_MS)}`,
  );
  const engines = new Map(rows.map(([name, engine]) => [String(name), String(engine)]));
  for (const { of, table, change, isIn } of alterations) {
    const name = `${of.database}.${localName(of, table)}`;
    if (isIn(engines.get(name) ?? "")) continue;
    await clickhouse.command(`ALTER TABLE ${name}${onCluster(of.cluster)} ${change}`);
  }
}
