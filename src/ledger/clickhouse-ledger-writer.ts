import { assert } from "../core/errors.ts";
import { isJobId } from "../core/ids.ts";
import type { LedgerRow, LedgerWriter } from "../core/ledger.ts";
import { limits } from "../core/limits.ts";
import { TENANT_ID } from "../core/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { insertSettings } from "./statement-settings.ts";
import type { LedgerTarget } from "./table.ts";

const EVENT_COLUMNS = ["tenant_id", "event_id", "job_id", "channel", "event_type", "result"] as const;
const JOB_COLUMNS = ["tenant_id", "job_id", "channel", "status", "attempts", "result", "version", "template"] as const;

/**
 * Writes batches into `events` and `jobs`.
 *
 * Each insert has a token made of the batch's token, its table and its stretch of the batch. The tables remember their
 * last 10,000 tokens, so repeating a batch that was stored, wholly or in part, adds only what is missing. A token that
 * comes again with other rows would drop them in silence; that the stretch is part of it keeps this true even when the
 * size of an insert changes between two versions of the program.
 */
export class ClickHouseLedgerWriter implements LedgerWriter {
  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: LedgerTarget,
  ) {}

  /** Rejects with `TransportError` where it is unknown how much is stored; the same call again is safe. */
  async write(token: string, rows: readonly LedgerRow[]): Promise<void> {
    for (const row of rows) assertWritable(row);
    // Events first: a job that can be found then has its events.
    await this.insertAll("events", EVENT_COLUMNS, token, rows.map(eventLine));
    await this.insertAll("jobs", JOB_COLUMNS, token, rows.flatMap(jobLine));
  }

  private async insertAll(
    table: "events" | "jobs",
    columns: readonly string[],
    token: string,
    lines: readonly string[],
  ): Promise<void> {
    for (const { from, to } of stretches(lines)) {
      const settings = insertSettings(this.target, `${token}:${table}:${from}-${to}`);
      await this.clickhouse.insert(
        `INSERT INTO ${this.target.database}.${table} (${columns.join(", ")}) SETTINGS ${settings} FORMAT JSONCompactEachRow`,
        lines.slice(from, to).join(""),
      );
    }
  }
}

/** A row that breaks these would block its shard's outbox for good or, worse, be read as something else. */
function assertWritable({ tenantId, jobId, eventId }: LedgerRow): void {
  assert(TENANT_ID.test(tenantId), "a ledger row names a tenant");
  assert(isJobId(jobId), "a ledger row names a job");
  assert(Number.isSafeInteger(eventId) && eventId >= 0, "an event id is a whole number below 2^53");
}

function eventLine(row: LedgerRow): string {
  const { tenantId, eventId, jobId, channel, type, result } = row;
  return `${JSON.stringify([tenantId, eventId, jobId, channel, type, JSON.stringify(result)])}\n`;
}

function jobLine({ tenantId, jobId, channel, finished, eventId }: LedgerRow): string[] {
  if (finished === null) return [];
  const { status, attempts, result, template = "" } = finished;
  return [
    `${JSON.stringify([tenantId, jobId, channel, status, attempts, JSON.stringify(result), eventId, template])}\n`,
  ];
}

/** Cuts the lines into stretches [from, to) of bounded size; a line longer than the bound has one of its own. */
function* stretches(lines: readonly string[]): Generator<{ readonly from: number; readonly to: number }> {
  let from = 0;
  let chars = 0;
  for (const [at, line] of lines.entries()) {
    if (at > from && chars + line.length > limits.ledgerInsertCharsMax) {
      yield { from, to: at };
      from = at;
      chars = 0;
    }
    chars += line.length;
  }
  if (from < lines.length) yield { from, to: lines.length };
}
