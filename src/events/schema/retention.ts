import { EVENT_EPOCH_MS, EVENT_IDS_PER_MS } from "../../domain/jobs/event.ts";
import { limits } from "../../domain/limits.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { Sweep } from "../../domain/sweep.ts";
import type { ClickHouse } from "../clickhouse.ts";
import { FAILED_PAYLOADS, sealedTarget } from "../failed-payloads.ts";
import { selectSettings } from "../statement-settings.ts";
import { type Alteration, alterTables } from "./alter-tables.ts";
import { checked, type EventStoreTarget, localName, onCluster } from "./table.ts";

/** How long the event store keeps events and jobs. The sums by hour and day stay: they hold no personal data. */
export interface Retention {
  /** Retention of an event, counted from its own time. */
  readonly eventsMonths: number;
  /** Retention of a finished job, counted from its end. */
  readonly jobsDays: number;
}

/** Returns the time (unix ms) until which an event of this time is kept. */
export function eventsKeptUntilMs(eventMs: number, months: number): number {
  const until = new Date(eventMs);
  until.setUTCMonth(until.getUTCMonth() + months);
  return until.getTime();
}

/**
 * A table whose rows are removed by whole partitions, and the time (unix ms) until which a partition with this last row is
 * kept.
 */
interface Kept {
  readonly table: string;
  readonly of: EventStoreTarget;
  keptUntilMs(lastMs: number): number;
  /** The column with a row's time, where the partition does not give it: jobs are in the month of their id. */
  readonly lastId?: string;
}

/** Tables of former releases had a TTL, which removes all rows that are old by the engine's own clock. */
export function withoutTtl(target: EventStoreTarget): readonly Alteration[] {
  return keptTables(checked(target), { eventsMonths: 1, jobsDays: 1 }).map(({ of, table }) => ({
    of,
    table,
    change: "REMOVE TTL",
    isIn: (engine: string) => !hasTtl(engine),
  }));
}

/** Takes the TTL off the tables that have one. Rejects as `alterTables` does, and can be repeated. */
export function removeTtl(clickhouse: ClickHouse, target: EventStoreTarget): Promise<void> {
  return alterTables(clickhouse, withoutTtl(target));
}

/** Whether one of the tables is as a former release left it. */
export async function keepsTtl(clickhouse: ClickHouse, target: EventStoreTarget): Promise<boolean> {
  const databases = [target, sealedTarget(target)].map(({ database }) => `'${database}'`).join(", ");
  const rows = await clickhouse.rows(
    `SELECT engine_full FROM system.tables WHERE database IN (${databases}) SETTINGS ${selectSettings(target, LOOK_TIMEOUT_MS)}`,
  );
  return rows.some(([engine]) => hasTtl(String(engine)));
}

const hasTtl = (engine: string) => / TTL /.test(engine);
const DAY_MS = 86_400_000;
const SWEEP_MS = 60 * 60 * 1000;
const LOOK_TIMEOUT_MS = 60_000;

export interface ExpiredHistoryPorts extends RuntimePorts {
  readonly clickhouse: { readonly reading: ClickHouse; readonly writing: ClickHouse };
  readonly target: EventStoreTarget;
  readonly retention: Retention;
  /** The current time, agreed on by several clocks, that decides which rows are old. */
  agreedMs(): Promise<number>;
}

/** Removes history that is too old, every hour, a partition once its last row is: a month, or a day of contents. */
export class ExpiredHistory extends Sweep {
  constructor(private readonly ports: ExpiredHistoryPorts) {
    super(ports, { everyMs: SWEEP_MS, failure: "expired history could not be removed" });
  }

  protected override async work(): Promise<void> {
    const { target, retention } = this.ports;
    const nowMs = await this.ports.agreedMs();
    for (const kept of keptTables(checked(target), retention)) await this.sweepTable(kept, nowMs);
  }

  private async sweepTable(kept: Kept, nowMs: number): Promise<void> {
    const { clickhouse, telemetry } = this.ports;
    const { of, table } = kept;
    const local = localName(of, table);
    for (const partition of await this.partitions(of, local)) {
      const span = parseSpan(partition);
      if (this.isStopping || span === null) continue;
      // Ids of jobs are made by a process's clock, which may have been ahead.
      const mayBeOld = kept.keptUntilMs(span.endMs) <= nowMs || (kept.lastId !== undefined && span.beginMs > nowMs);
      if (!mayBeOld || kept.keptUntilMs(await this.lastMs(kept, partition, span.endMs)) > nowMs) continue;
      await clickhouse.writing.command(
        `ALTER TABLE ${of.database}.${local}${onCluster(of.cluster)} DROP PARTITION ID '${partition}'`,
      );
      telemetry.log("info", "expired history was removed", { table: `${of.database}.${table}`, partition });
    }
  }

  private async partitions(of: EventStoreTarget, local: string): Promise<readonly string[]> {
    const parts = of.cluster === null ? "system.parts" : `clusterAllReplicas('${of.cluster}', system.parts)`;
    const rows = await this.rows(
      `SELECT DISTINCT partition_id FROM ${parts} WHERE database = '${of.database}' AND table = '${local}' AND active ORDER BY partition_id`,
    );
    return rows.map(([partition]) => String(partition));
  }

  /** Returns the time of a partition's last row; the partition's end if that suffices. */
  private async lastMs({ of, table, lastId }: Kept, partition: string, endMs: number): Promise<number> {
    if (lastId === undefined) return endMs;
    const [row] = await this.rows(
      `SELECT max(${lastId}) FROM ${of.database}.${table} WHERE _partition_id = '${partition}'`,
    );
    return Number(row?.[0] ?? 0) / EVENT_IDS_PER_MS + EVENT_EPOCH_MS;
  }

  private rows(sql: string) {
    return this.ports.clickhouse.reading.rows(`${sql} SETTINGS ${selectSettings(this.ports.target, LOOK_TIMEOUT_MS)}`);
  }
}

function keptTables(of: EventStoreTarget, { eventsMonths, jobsDays }: Retention): readonly Kept[] {
  const months = (lastMs: number) => eventsKeptUntilMs(lastMs, eventsMonths);
  const days = (count: number) => (lastMs: number) => lastMs + count * DAY_MS;
  return [
    { table: "events", of, keptUntilMs: months },
    { table: "events_by_type", of, keptUntilMs: months },
    { table: "jobs", of, keptUntilMs: days(jobsDays), lastId: "version" },
    { table: "refused_rows", of, keptUntilMs: days(90) },
    { table: "events_by_minute", of, keptUntilMs: days(3) },
    { table: FAILED_PAYLOADS.name, of: sealedTarget(of), keptUntilMs: days(limits.failedKeptDays) },
  ];
}

/** Returns the time span (unix ms) of a partition by month (`202611`) or day (`20261127`); null: it is neither. */
function parseSpan(partition: string): { readonly beginMs: number; readonly endMs: number } | null {
  const [, year, month, day] = /^(\d{4})(\d\d)(\d\d)?$/.exec(partition) ?? [];
  if (year === undefined || month === undefined) return null;
  const at = (days: number, months: number) =>
    Date.UTC(Number(year), Number(month) - 1 + months, Number(day ?? 1) + days);
  return { beginMs: at(0, 0), endMs: day === undefined ? at(0, 1) : at(1, 0) };
}
