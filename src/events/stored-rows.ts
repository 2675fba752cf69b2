import type { StoredEventRow } from "../domain/jobs/event-store.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** Which of the given rows are stored. */
export class StoredRows {
  constructor(
    private readonly events: ReadonlySet<string>,
    private readonly versions: ReadonlyMap<string, number>,
  ) {}

  /** Whether any of the events is stored. */
  get hasEvents(): boolean {
    return this.events.size > 0;
  }

  hasEvent(row: StoredEventRow): boolean {
    return this.events.has(eventKey(row));
  }

  /**
   * Whether the job state that this row sets, if any, is stored, or a later one that replaces it.
   */
  hasJob({ jobId, eventId, finished }: StoredEventRow): boolean {
    return finished === null || (this.versions.get(jobId) ?? -1) >= eventId;
  }
}

/** Most names in one statement, because the server bounds the length of its text. */
const NAMES_MAX = 1_000;

export const eventKey = ({ tenantId, eventId }: Pick<StoredEventRow, "tenantId" | "eventId">) =>
  `${tenantId}:${eventId}`;

/**
 * Looks rows up by the primary keys of their tables. The caller has checked that tenant and job ids are plain. Rejects with `UnavailableError`.
 */
export async function storedRows(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  rows: readonly StoredEventRow[],
): Promise<StoredRows> {
  const settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  const events = await storedEvents(clickhouse, target, { table: "events", rows });
  const versions = new Map<string, number>();
  for (const piece of pieces(rows.filter(({ finished }) => finished !== null))) {
    const jobs = piece.map(({ jobId }) => `'${jobId}'`).join(", ");
    const [tenants] = tenantPieces(piece);
    const found = await clickhouse.rows(
      `SELECT job_id, max(version) FROM ${target.database}.jobs WHERE ${tenants} AND job_id IN (${jobs}) GROUP BY job_id SETTINGS ${settings}`,
    );
    for (const [jobId, version] of found) versions.set(String(jobId), Number(version));
  }
  return new StoredRows(events, versions);
}

/**
 * Returns the keys of the rows whose events are stored. Usually a batch contains all of its tenants' events from its first to
 * its last, and that range is read. But a batch spans many shards: if one of them is hours behind, others have far more events
 * in between. Then the rows are looked up one by one, which takes ten times as long. Rejects with `UnavailableError`.
 */
export async function storedEvents(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { table, rows }: { readonly table: "events" | "events_by_type"; readonly rows: readonly StoredEventRow[] },
): Promise<ReadonlySet<string>> {
  const settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  const select = `SELECT tenant_id, event_id FROM ${target.database}.${table} WHERE`;
  const most = 2 * rows.length;
  const keys = new Set<string>();
  const add = (found: readonly (readonly unknown[])[]) => {
    for (const [tenantId, eventId] of found) keys.add(`${String(tenantId)}:${String(eventId)}`);
  };
  let isTooMuch = false;
  for (const tenants of tenantPieces(rows)) {
    const found = await clickhouse.rows(`${select} ${tenants} AND ${idRange(rows)} LIMIT ${most} SETTINGS ${settings}`);
    add(found);
    isTooMuch = found.length === most;
    if (isTooMuch) break;
  }
  if (!isTooMuch) return keys;
  for (const piece of keyPieces(rows)) add(await clickhouse.rows(`${select} ${piece} SETTINGS ${settings}`));
  return keys;
}

/** Returns conditions that together match the tenants of the rows. */
export function tenantPieces(rows: readonly StoredEventRow[]): readonly string[] {
  const tenants = new Set(rows.map(({ tenantId }) => `'${tenantId}'`));
  return pieces([...tenants]).map((names) => `tenant_id IN (${names.join(", ")})`);
}

/**
 * Returns conditions that together match exactly the rows. A tenant's rows are together, so each part of the table is read
 * once.
 */
function keyPieces(rows: readonly StoredEventRow[]): readonly string[] {
  const byTenant = [...Map.groupBy(rows, ({ tenantId }) => tenantId).values()].flat();
  const keys = byTenant.map(({ tenantId, eventId }) => `('${tenantId}', ${eventId})`);
  return pieces(keys).map((piece) => `(tenant_id, event_id) IN (${piece.join(", ")})`);
}

/** From the first to the last event of the rows. */
function idRange(rows: readonly StoredEventRow[]): string {
  const ids = rows.map(({ eventId }) => eventId);
  return `event_id >= ${Math.min(...ids)} AND event_id <= ${Math.max(...ids)}`;
}

function pieces<T>(all: readonly T[]): readonly (readonly T[])[] {
  const found: T[][] = [];
  for (let at = 0; at < all.length; at += NAMES_MAX) found.push(all.slice(at, at + NAMES_MAX));
  return found;
}
