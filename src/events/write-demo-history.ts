import type { StoredEventRow } from "../domain/jobs/event-store.ts";
import type { ClickHouse } from "./clickhouse.ts";
import type { ClickHouseEventWriter } from "./clickhouse-event-writer.ts";
import { DEMO_PREFIX } from "./demo-history.ts";
import type { EventStoreTarget } from "./schema/table.ts";

const BATCH_ROWS = 5_000;

export interface DemoPorts {
  readonly reading: ClickHouse;
  readonly writer: Pick<ClickHouseEventWriter, "write">;
  readonly target: EventStoreTarget;
}

/** Events found in the event store. */
export interface FoundEvents {
  /** Events of tenants that are not part of a demonstration. */
  readonly real: number;
  /** Whether there is a demonstration, and whether it is this one. */
  readonly demo: "none" | "same" | "another";
}

export async function findEvents(
  { reading, target }: DemoPorts,
  rows: readonly StoredEventRow[],
): Promise<FoundEvents> {
  const isDemo = `startsWith(tenant_id, '${DEMO_PREFIX}')`;
  const table = `${target.database}.events`;
  const [counts] = await reading.rows(`SELECT countIf(NOT ${isDemo}), countIf(${isDemo}) FROM ${table}`);
  const [real, demo] = [Number(counts?.[0]), Number(counts?.[1])];
  const [first] = rows;
  if (demo === 0 || first === undefined) return { real, demo: "none" };
  const [same] = await reading.rows(
    `SELECT count() FROM ${table} WHERE tenant_id = {t:String} AND event_id = {e:UInt64} AND job_id = {j:UUID}`,
    { t: first.tenantId, e: first.eventId, j: first.jobId },
  );
  return { real, demo: Number(same?.[0]) > 0 ? "same" : "another" };
}

/** Writes the history as a recorder would, so all sums fit. Repeated, it adds only what is missing. */
export async function writeDemoHistory(
  { writer }: DemoPorts,
  seed: number,
  rows: readonly StoredEventRow[],
  onProgress: (written: number) => void,
): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH_ROWS) {
    const batch = rows.slice(at, at + BATCH_ROWS);
    await writer.write(`demo-${seed}-${batch[0]?.eventId ?? 0}`, batch, "again");
    onProgress(at + batch.length);
  }
}
