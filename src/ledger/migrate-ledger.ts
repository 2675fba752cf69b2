import type { ClickHouse } from "./clickhouse.ts";
import { ledgerFoundation, ledgerMigrations } from "./schema.ts";
import { insertSettings, selectSettings } from "./statement-settings.ts";
import type { LedgerTarget } from "./table.ts";

/** How long the look at what has been run may take on the server. */
const LOOK_TIMEOUT_MS = 60_000;

/**
 * Brings the ledger's tables to the current schema and answers the versions that it ran. Safe to repeat, also half-way
 * and from several processes at once: every statement says IF NOT EXISTS or the like.
 */
export async function migrateLedger(clickhouse: ClickHouse, target: LedgerTarget): Promise<readonly number[]> {
  for (const statement of ledgerFoundation(target)) await clickhouse.command(statement);
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const rows = await clickhouse.rows(`SELECT version FROM ${target.database}.migrations SETTINGS ${settings}`);
  const known = new Set(rows.map(([version]) => version));
  const ran: number[] = [];
  for (const { version, name, statements } of ledgerMigrations(target)) {
    if (known.has(version)) continue;
    for (const statement of statements) await clickhouse.command(statement);
    // Noted last: a step that died before this line is run again.
    await clickhouse.insert(
      `INSERT INTO ${target.database}.migrations (version, name) SETTINGS ${insertSettings(target, `migration-${version}`)} FORMAT JSONCompactEachRow`,
      `${JSON.stringify([version, name])}\n`,
    );
    ran.push(version);
  }
  return ran;
}
