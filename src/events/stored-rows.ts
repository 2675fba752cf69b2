import { eventTimeMs } from "../domain/event.ts";
import type { StoredEventRow } from "../domain/event-store.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";
import { selectSettings } from "./statement-settings.ts";
import type { EventStoreTarget } from "./table.ts";

/** Which of the given rows are stored. */
export class StoredRows {
  constructor(
    private readonly events: ReadonlySet<string>,
    private readonly versions: ReadonlyMap<string, number>,
    private readonly jobsFromMs: number,
  ) {}

  /** Whether any of the events is stored. */
  get hasEvents(): boolean {
    return this.events.size > 0;
  }

  hasEvent(row: StoredEventRow): boolean {
    return this.events.has(eventKey(row));
  }

  /**
   * Whether the job state that this row sets, if any, is stored, or a later one that replaces it, or has expired: the server
   * drops a state that is inserted after its time.
   */
  hasJob({ jobId, eventId, finished }: StoredEventRow): boolean {
    if (finished === null || eventTimeMs(eventId) < this.jobsFromMs) return true;
    return (this.versions.get(jobId) ?? -1) >= eventId;
  }
}

/** Most names in one statement, because the server bounds the length of its text. */
const NAMES_MAX = 1_000;

export const eventKey = ({ tenantId, eventId }: Pick<StoredEventRow, "tenantId" | "eventId">) =>
  `${tenantId}:${eventId}`;

/**
 * Looks rows up by the primary keys of their tables. States of jobs that ended before `jobsFromMs` may have expired. The caller
 * has checked that tenant and job ids are plain. Rejects with `UnavailableError`.
 */
export async function storedRows(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { rows, jobsFromMs }: { readonly rows: readonly StoredEventRow[]; readonly jobsFromMs: number },
): Promise<StoredRows> {
  const settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  const events = new Set<string>();
  for (const tenants of tenantPieces(rows)) {
    const found = await clickhouse.rows(
      `SELECT tenant_id, event_id FROM ${target.database}.events WHERE ${tenants} AND ${idRange(rows)} SETTINGS ${settings}`,
    );
    for (const [tenantId, eventId] of found) events.add(`${String(tenantId)}:${String(eventId)}`);
  }
  const versions = new Map<string, number>();
  const finished = rows.filter((row) => row.finished !== null);
  for (let at = 0; at < finished.length; at += NAMES_MAX) {
    const piece = finished.slice(at, at + NAMES_MAX);
    const jobs = piece.map(({ jobId }) => `'${jobId}'`).join(", ");
    const [tenants] = tenantPieces(piece);
    const found = await clickhouse.rows(
      `SELECT job_id, max(version) FROM ${target.database}.jobs WHERE ${tenants} AND job_id IN (${jobs}) GROUP BY job_id SETTINGS ${settings}`,
    );
    for (const [jobId, version] of found) versions.set(String(jobId), Number(version));
  }
  return new StoredRows(events, versions, jobsFromMs);
}

/** Conditions that together match the tenants of the rows. */
export function tenantPieces(rows: readonly StoredEventRow[]): readonly string[] {
  const tenants = [...new Set(rows.map(({ tenantId }) => tenantId))];
  const pieces: string[] = [];
  for (let at = 0; at < tenants.length; at += NAMES_MAX) {
    const names = tenants.slice(at, at + NAMES_MAX).map((tenantId) => `'${tenantId}'`);
    pieces.push(`tenant_id IN (${names.join(", ")})`);
  }
  return pieces;
}

/** From the first to the last event of the rows; a shard's batch is a contiguous range of event ids per tenant. */
export function idRange(rows: readonly StoredEventRow[]): string {
  const ids = rows.map(({ eventId }) => eventId);
  return `event_id >= ${Math.min(...ids)} AND event_id <= ${Math.max(...ids)}`;
}
