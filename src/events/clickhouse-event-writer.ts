import type { Clock } from "../domain/clock.ts";
import { TransportError } from "../domain/errors.ts";
import { isJobId } from "../domain/ids.ts";
import { eventTimeMs } from "../domain/jobs/event.ts";
import {
  type EventWriter,
  RowsRefusedError,
  type StoredEventRow,
  type WriteAttempt,
  type WriteOutcome,
} from "../domain/jobs/event-store.ts";
import { remember } from "../domain/remember.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { derivedGaps, insertGaps } from "./derived-gaps.ts";
import { EVENT_COLUMNS, eventValues, JOB_COLUMNS, jobValues } from "./event-rows.ts";
import {
  FAILED_PAYLOAD_COLUMNS,
  type FailedPayloadPorts,
  failedPayloadLines,
  sealedTarget,
} from "./failed-payloads.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { insertSettings } from "./statement-settings.ts";
import { type StoredRows, storedRows } from "./stored-rows.ts";

/**
 * Counted from a batch's newest event. The batch's first insert is younger than that event, and tables remember their last
 * 10,000 inserts, more than all recorders together make in this time: so a token this young is certainly remembered, unless the
 * machine has lost its power since. A table on one server does not sync its tokens.
 */
const TOKEN_SURE_MS = 30_000;
/**
 * How long the state of a partly stored batch must be unchanged before its missing rows are added: by then, no insert that its
 * caller gave up on is still running.
 */
const SETTLED_MS = 30_000;
/** The state of a batch with no stored row. */
const NOTHING = "nothing";
/** ClickHouse's code for an insert that a replica has, and that too few others confirmed in time. */
const UNKNOWN_STATUS_OF_INSERT = "319";
/** Batches to keep track of that may still be under way: at most one per shard. */
const UNSETTLED_MAX = 1_000;
/** If a batch has more refused rows than this, the rows are not at fault: the table does not fit them. */
const SET_ASIDE_MAX = 10;

export interface EventWriterOptions {
  /** Null: jobs are stored without recipients, and no content is kept for a retry. */
  readonly ports?: FailedPayloadPorts | null;
  /** For how long (ms) the event store's machine has had power; by default for ever. */
  upMs?(): Promise<number>;
}

interface Unsettled {
  readonly looks: string;
  readonly sinceMs: number;
}

/**
 * Writes batches into `events` and `jobs`, and before them the content of failed jobs: if its events are stored, the content
 * was tried. It is not part of the history, so a refusal does not block the batch.
 *
 * Each insert has a token made of the batch's token, its table and its stretch of the batch. The tables remember their last
 * 10,000 tokens, so repeating a batch that was stored, wholly or in part, adds only what is missing. Reusing a token for other
 * rows would silently drop them; because the stretch is part of the token, this cannot happen even if two versions of the
 * program split a batch differently.
 *
 * A batch that may have been tried before is looked up first, because its token may be forgotten (`again`):
 * - No row is stored: the batch is inserted under its tokens and looked up once more. If replicas left the result open, this
 *   waits until no row has appeared for `SETTLED_MS`: a token did not always exclude the rows that such an insert had left
 *   (ClickHouse#81260).
 * - Everything is stored, including derived rows: the batch is done.
 * - A part is stored and the batch is younger than `TOKEN_SURE_MS`, and than the last loss of power: it is inserted under its tokens,
 *   which completes it.
 * - A part is stored and the batch is older: once its state is unchanged for `SETTLED_MS`, the missing rows are inserted,
 *   then the missing rows of the derived tables. If only job states are missing, they are inserted at once.
 */
export class ClickHouseEventWriter implements EventWriter {
  private readonly unsettled = new Map<string, Unsettled>();
  private readonly ports: FailedPayloadPorts | null;
  private readonly upMs: () => Promise<number>;

  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
    private readonly clock: Clock,
    { ports = null, upMs = () => Promise.resolve(Number.POSITIVE_INFINITY) }: EventWriterOptions = {},
  ) {
    this.upMs = upMs;
    this.ports = ports;
  }

  /**
   * Rejects with `TransportError` if it is unknown how much is stored, with `UnavailableError` if the batch cannot be looked
   * up, and with `RowsRefusedError`. The call can safely be repeated.
   */
  async write(token: string, rows: readonly StoredEventRow[], attempt: WriteAttempt = "new"): Promise<WriteOutcome> {
    if (attempt === "apart") return this.writeApart(token, rows);
    for (const row of rows) {
      const fault = findFault(row);
      if (fault !== null) throw new RowsRefusedError(fault);
    }
    if (attempt === "again") return this.complete(token, rows);
    await this.insertAll(token, rows);
    return { wereThere: false, setAside: 0 };
  }

  private async insertAll(token: string, rows: readonly StoredEventRow[]): Promise<void> {
    await this.keepContents(token, rows);
    try {
      // Events first: any job that can be found then has its events.
      await this.insert(token, "events", rows.map(eventLine));
      await this.insert(token, "jobs", this.jobLines(rows));
    } catch (error) {
      if (isUndecided(error)) this.beginToSettle(token, NOTHING);
      throw error;
    }
  }

  /** Writes the missing rows of a batch. */
  private async complete(token: string, rows: readonly StoredEventRow[]): Promise<WriteOutcome> {
    const before = await this.look(rows);
    const wereThere = before.hasEvents;
    const outcome = { wereThere, setAside: 0 };
    if (wereThere && (await this.isWhole(rows, before))) return outcome;
    if (!wereThere && this.unsettled.get(token)?.looks === NOTHING) this.waitUntilSettled(token, NOTHING);
    const ageMs = this.clock.nowMs() - eventTimeMs(Math.max(...rows.map(({ eventId }) => eventId)));
    if (!wereThere || ageMs < Math.min(TOKEN_SURE_MS, await this.upMs())) {
      await this.insertAll(token, rows);
      if (await this.isWhole(rows, await this.look(rows))) return outcome;
    }
    await this.addMissing(token, rows);
    return outcome;
  }

  private async addMissing(token: string, rows: readonly StoredEventRow[]): Promise<void> {
    const stored = await this.look(rows);
    const events = rows.filter((row) => !stored.hasEvent(row));
    const jobs = rows.filter((row) => !stored.hasJob(row));
    const gaps = await derivedGaps(this.clickhouse, this.target, rows);
    // A job state stored twice replaces itself, so it need not wait.
    if (events.length > 0 || gaps.length > 0) this.waitUntilSettled(token, JSON.stringify([events.length, gaps]));
    // These are not the rows that the batch's own token stood for, so they get a token of their own.
    await this.insert(`${token}:rest-${events[0]?.eventId ?? 0}-${events.length}`, "events", events.map(eventLine));
    await this.insert(`${token}:rest-${jobs[0]?.eventId ?? 0}-${jobs.length}`, "jobs", this.jobLines(jobs));
    // Rows added to `events` reach the derived tables by themselves.
    const left = events.length === 0 ? gaps : await derivedGaps(this.clickhouse, this.target, rows);
    await insertGaps(this.clickhouse, this.target, { token, gaps: left });
    if (!(await this.isWhole(rows, await this.look(rows)))) {
      throw new TransportError("clickhouse does not show all of a batch that was completed");
    }
    this.unsettled.delete(token);
  }

  /** Throws `TransportError` until the state has been unchanged for long enough. */
  private waitUntilSettled(token: string, looks: string): void {
    const known = this.unsettled.get(token);
    if (known?.looks === looks && this.clock.monotonicMs() - known.sinceMs >= SETTLED_MS) return;
    if (known?.looks !== looks) this.beginToSettle(token, looks);
    throw new TransportError("a batch may be stored in part, or still be under way: it is completed when it is not");
  }

  private beginToSettle(token: string, looks: string): void {
    remember(this.unsettled, {
      key: token,
      value: { looks, sinceMs: this.clock.monotonicMs() },
      max: UNSETTLED_MAX,
    });
  }

  private async isWhole(rows: readonly StoredEventRow[], stored: StoredRows): Promise<boolean> {
    const isStored = rows.every((row) => stored.hasEvent(row) && stored.hasJob(row));
    return isStored && (await derivedGaps(this.clickhouse, this.target, rows)).length === 0;
  }

  private look(rows: readonly StoredEventRow[]): Promise<StoredRows> {
    return storedRows(this.clickhouse, this.target, rows);
  }

  /** Writes all rows except those refused individually, which are set aside. */
  private async writeApart(token: string, rows: readonly StoredEventRow[]): Promise<WriteOutcome> {
    const refused = new Refused();
    for (const row of rows) {
      const fault = findFault(row);
      if (fault !== null) refused.add(row, fault);
    }
    const writable = rows.filter((row) => !refused.has(row));
    const stored = await this.look(writable);
    const events = writable.filter((row) => !stored.hasEvent(row));
    await this.keepContents(`${token}:apart`, events);
    await this.insertApart(token, { table: "events", rows: events, refused });
    const jobs = writable.filter((row) => !refused.has(row) && !stored.hasJob(row));
    await this.insertApart(token, { table: "jobs", rows: jobs, refused });
    await this.setAside(token, refused);
    return { wereThere: stored.hasEvents, setAside: refused.size };
  }

  private async insertApart(token: string, { table, rows, refused }: Piece): Promise<void> {
    const [first] = rows;
    if (first === undefined) return;
    try {
      const lines = table === "events" ? rows.map(eventLine) : this.jobLines(rows);
      await this.insert(`${token}:apart-${first.eventId}-${rows.length}`, table, lines);
    } catch (error) {
      if (!(error instanceof RowsRefusedError)) throw error;
      if (rows.length === 1) return refused.add(first, error.message);
      const middle = rows.length >> 1;
      await this.insertApart(token, { table, rows: rows.slice(0, middle), refused });
      await this.insertApart(token, { table, rows: rows.slice(middle), refused });
    }
  }

  /** Keeps the refused rows, with the reason, for operators to find. */
  private async setAside(token: string, refused: Refused): Promise<void> {
    for (const { row, fault } of refused.all()) {
      const settings = insertSettings(this.target, `${token}:aside-${row.eventId}`);
      await this.clickhouse.insert(
        `INSERT INTO ${this.target.database}.refused_rows (at, tenant_id, token, fault, row) SETTINGS ${settings} FORMAT JSONCompactEachRow`,
        refusedLine(row, { atMs: this.clock.nowMs(), token, fault }),
      );
    }
  }

  private jobLines(rows: readonly StoredEventRow[]): string[] {
    return rows.flatMap((row) => {
      const values = jobValues(row, this.ports?.recipients ?? null);
      return values === null ? [] : [`${JSON.stringify(values)}\n`];
    });
  }

  private async keepContents(token: string, rows: readonly StoredEventRow[]): Promise<void> {
    if (this.ports === null || rows.every(({ finished }) => finished?.kept === undefined)) return;
    const lines = await failedPayloadLines(rows, this.ports);
    try {
      await this.insert(token, "failed_payloads", lines);
    } catch (error) {
      if (!(error instanceof RowsRefusedError)) throw error;
    }
  }

  private async insert(token: string, table: keyof typeof COLUMNS, lines: readonly string[]): Promise<void> {
    const columns = COLUMNS[table];
    const { database } = table === "failed_payloads" ? sealedTarget(this.target) : this.target;
    for (const { from, to } of stretches(lines)) {
      const settings = insertSettings(this.target, `${token}:${table}:${from}-${to}`);
      await this.clickhouse.insert(
        `INSERT INTO ${database}.${table} (${columns.join(", ")}) SETTINGS ${settings} FORMAT JSONCompactEachRow`,
        lines.slice(from, to).join(""),
      );
    }
  }
}

const COLUMNS = { events: EVENT_COLUMNS, jobs: JOB_COLUMNS, failed_payloads: FAILED_PAYLOAD_COLUMNS } as const;

interface Piece {
  readonly table: "events" | "jobs";
  readonly rows: readonly StoredEventRow[];
  readonly refused: Refused;
}

/** The rows of a batch that no table accepts. */
class Refused {
  private readonly faults = new Map<StoredEventRow, string>();

  get size(): number {
    return this.faults.size;
  }

  has(row: StoredEventRow): boolean {
    return this.faults.has(row);
  }

  /** Throws if there are too many. */
  add(row: StoredEventRow, fault: string): void {
    this.faults.set(row, fault);
    if (this.faults.size > SET_ASIDE_MAX) {
      throw new RowsRefusedError(`more than ${SET_ASIDE_MAX} rows of a batch were refused, the last one: ${fault}`);
    }
  }

  all(): readonly { readonly row: StoredEventRow; readonly fault: string }[] {
    return Array.from(this.faults, ([row, fault]) => ({ row, fault }));
  }
}

function isUndecided(error: unknown): boolean {
  const cause = error instanceof TransportError ? error.cause : null;
  return cause instanceof Error && "code" in cause && cause.code === UNKNOWN_STATUS_OF_INSERT;
}

/** Returns the reason why a row must not reach a statement, or null. */
function findFault({ tenantId, jobId, eventId }: StoredEventRow): string | null {
  if (!TENANT_ID.test(tenantId)) return "an event store row names no tenant";
  if (!isJobId(jobId)) return "an event store row names no job";
  if (!Number.isSafeInteger(eventId) || eventId < 0) return "an event id is no whole number below 2^53";
  return null;
}

const eventLine = (row: StoredEventRow) => `${JSON.stringify(eventValues(row))}\n`;

interface Refusal {
  readonly atMs: number;
  readonly token: string;
  readonly fault: string;
}

/** All columns are text, so the table accepts any row. Recipients and contents are never stored in clear. */
function refusedLine(row: StoredEventRow, { atMs, token, fault }: Refusal): string {
  const text = [row.tenantId, token, fault.slice(0, 1_000), JSON.stringify(row, withoutPersons)].map((one) =>
    one.toWellFormed(),
  );
  return `${JSON.stringify([Math.floor(atMs / 1000), ...text])}\n`;
}

function withoutPersons(name: string, value: unknown): unknown {
  return name === "recipient" || name === "kept" ? undefined : value;
}

/** Cuts the lines into stretches [from, to) of bounded size; a line longer than the bound gets its own stretch. */
function* stretches(lines: readonly string[]): Generator<{ readonly from: number; readonly to: number }> {
  let from = 0;
  let chars = 0;
  for (const [at, line] of lines.entries()) {
    if (at > from && chars + line.length > eventLimits.eventStoreInsertCharsMax) {
      yield { from, to: at };
      from = at;
      chars = 0;
    }
    chars += line.length;
  }
  if (from < lines.length) yield { from, to: lines.length };
}
