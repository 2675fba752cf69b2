import { assert, UnavailableError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import type { EventExport, ExportFormat, ExportQuery } from "./endpoints/export-endpoint.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/**
 * Writes events to files.
 *
 * Text formats are read in pieces, each a range of the primary key that begins where the last one ended. A tenant's events
 * become visible in the order of their ids, so no row is ever inserted behind the read position: every event that existed at
 * the beginning is read exactly once, whatever is written meanwhile. Only one piece is in memory at a time.
 *
 * ClickHouse writes Parquet itself, in one statement that sees the table as it was when the statement began.
 */
export class ClickHouseEventExport implements EventExport {
  private readonly pieceSettings: string;

  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
  ) {
    this.pieceSettings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  }

  async open(query: ExportQuery, signal: AbortSignal): Promise<AsyncGenerator<Uint8Array, void>> {
    assert(query.tenantId === null || TENANT_ID.test(query.tenantId), "an export is of a tenant, or of all");
    if (query.format !== "parquet") return begun(this.pieces(query, LINES[query.format], signal));
    return begun(this.parquet(query, signal));
  }

  private async *pieces(query: ExportQuery, { header, line }: Lines, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    if (header !== "") yield Buffer.from(header);
    let rowsMax: number = eventLimits.exportPieceRowsMax;
    for (let after: Key | null = null; !signal.aborted; ) {
      const bytes = await this.clickhouse.bytes(this.pieceSql(query, { after, line, rowsMax }));
      if (bytes.length === 0) return;
      after = readLastKey(bytes, query.format);
      yield bytes;
      // The last row has been read. Checking for newer events could go on forever for a tenant that is always busy.
      if (countLines(bytes) < rowsMax) return;
      // Results can be long, so a piece is limited by bytes rather than by rows.
      rowsMax = Math.ceil(
        Math.min(eventLimits.exportPieceRowsMax, (rowsMax * eventLimits.exportPieceBytesMax) / bytes.length),
      );
    }
    throw new UnavailableError("the export was given up");
  }

  private pieceSql(query: ExportQuery, { after, line, rowsMax }: Piece): string {
    const { tenantId } = query;
    const beyond = after === null ? "" : ` AND ${tenantId === null ? beyondKey(after) : `event_id > ${after.eventId}`}`;
    return `SELECT ${line}
FROM ${this.target.database}.events
WHERE ${formatRange(query)}${beyond}
ORDER BY tenant_id, event_id
LIMIT ${rowsMax}
SETTINGS ${this.pieceSettings}
FORMAT TSVRaw`;
  }

  /** Enum values as text, which readers of Parquet expect, rather than the numbers stored in the table. */
  private parquetSelect(query: ExportQuery): string {
    return `SELECT toString(tenant_id) AS tenant_id, event_id, created_at, toString(job_id) AS job_id,
  toString(channel) AS channel, toString(event_type) AS event_type, result,
  toString(failure_class) AS failure_class
FROM ${this.target.database}.events
WHERE ${formatRange(query)}
ORDER BY tenant_id, event_id`;
  }

  private parquetSettings(): string {
    return [
      selectSettings(this.target, limits.exportFileMsMax),
      // The range applies to the column, not to the text alias of the same name.
      "prefer_column_name_to_alias = 1",
      "output_format_parquet_string_as_string = 1",
      // A row group stays in memory until it is written; the default of a million rows would take a gigabyte.
      "output_format_parquet_row_group_size = 100000",
      `output_format_parquet_row_group_size_bytes = ${16 * 1024 * 1024}`,
      "output_format_parquet_parallel_encoding = 0",
      `max_memory_usage = ${512 * 1024 * 1024}`,
    ].join(", ");
  }

  private async *parquet(query: ExportQuery, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const sql = `${this.parquetSelect(query)}\nSETTINGS ${this.parquetSettings()}\nFORMAT Parquet`;
    let last: Uint8Array = new Uint8Array(0);
    for await (const chunk of this.clickhouse.stream(sql, signal)) {
      if (chunk.length === 0) continue;
      last = chunk.length >= PARQUET_MAGIC.length ? chunk : Buffer.concat([last, chunk]);
      yield chunk;
    }
    // A server that fails midway appends the error to what it has sent, under status 200.
    if (signal.aborted || !Buffer.from(last).subarray(-PARQUET_MAGIC.length).equals(PARQUET_MAGIC)) {
      throw new UnavailableError("clickhouse did not end a Parquet file");
    }
  }
}

/** The first and last bytes of a Parquet file. */
const PARQUET_MAGIC = Buffer.from("PAR1");

interface Key {
  readonly tenantId: string;
  readonly eventId: string;
}

interface Piece {
  readonly after: Key | null;
  readonly line: string;
  readonly rowsMax: number;
}

interface Lines {
  readonly header: string;
  /** SQL for the text of one row, without its line break. */
  readonly line: string;
}

/** `2026-11-01T08:00:00.123Z`. */
const CREATED_AT = "replaceOne(toString(created_at), ' ', 'T'), 'Z'";
/** A result damaged by hand loses only its own content, and a line stays one line. */
const RESULT =
  "if(result = '{}', result, if(isValidJSON(result), replaceRegexpAll(result, '[\\\\r\\\\n]', ' '), '{}'))";

/**
 * ClickHouse formats the lines itself, which keeps formatting and parsing off the event loop. Tenant ids, job ids, enum
 * values and classes of failures need no escaping in either format.
 */
const LINES: Readonly<Record<Exclude<ExportFormat, "parquet">, Lines>> = {
  ndjson: {
    header: "",
    line: `concat('{"tenant_id":"', tenant_id, '","event_id":', toString(event_id), ',"created_at":"', ${CREATED_AT},
  '","job_id":"', toString(job_id), '","channel":"', toString(channel), '","event_type":"', toString(event_type),
  '","result":', ${RESULT}, ',"failure_class":"', failure_class, '"}')`,
  },
  csv: {
    header: "tenant_id,event_id,created_at,job_id,channel,event_type,result,failure_class\n",
    line: `concat(tenant_id, ',', toString(event_id), ',', ${CREATED_AT}, ',', toString(job_id), ',', toString(channel), ',',
  toString(event_type), ',"', replaceAll(${RESULT}, '"', '""'), '",', failure_class)`,
  },
};

/** Matches a complete line and captures its key. */
const LINE: Readonly<Record<Exclude<ExportFormat, "parquet">, RegExp>> = {
  ndjson: /^\{"tenant_id":"([a-z0-9-]+)","event_id":(\d+),"created_at":".*\}$/,
  csv: /^([a-z0-9-]+),(\d+),.*",\w*$/,
};

/** Throws `UnavailableError` if the answer does not end with a complete line: it then ends with an error's text. */
function readLastKey(bytes: Buffer, format: ExportFormat): Key {
  assert(format !== "parquet", "Parquet has no lines");
  const end = bytes.length - 1;
  const line = bytes.toString("utf8", bytes.lastIndexOf("\n", end - 1) + 1, end);
  const [, tenantId, eventId] = LINE[format].exec(line) ?? [];
  if (bytes[end] !== NEWLINE || tenantId === undefined || eventId === undefined) {
    throw new UnavailableError("clickhouse broke off an answer");
  }
  return { tenantId, eventId };
}

const NEWLINE = 10;

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

function formatRange({ tenantId, fromEventId, toEventId }: ExportQuery): string {
  for (const id of [fromEventId, toEventId]) assert(Number.isSafeInteger(id) && id >= 0, "a range of events has ends");
  const range = `event_id >= ${fromEventId} AND event_id < ${toEventId}`;
  return tenantId === null ? range : `tenant_id = '${tenantId}' AND ${range}`;
}

/** Spelled out, because ClickHouse does not use the primary key for comparisons of tuples. */
function beyondKey({ tenantId, eventId }: Key): string {
  return `(tenant_id > '${tenantId}' OR (tenant_id = '${tenantId}' AND event_id > ${eventId}))`;
}

/** Reads the first chunk ahead, so an immediate failure surfaces here. */
async function begun(chunks: AsyncGenerator<Uint8Array>): Promise<AsyncGenerator<Uint8Array, void>> {
  const all = (async function* () {
    try {
      const first = await chunks.next();
      yield new Uint8Array();
      if (first.done) return;
      yield first.value;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  })();
  // Consumes the placeholder: a generator that has not started would end without running its `finally`.
  await all.next();
  return all;
}
