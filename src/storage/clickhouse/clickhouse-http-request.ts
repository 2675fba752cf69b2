import { gunzipSync, inflateSync } from "node:zlib";
import type { AnalystQuery } from "../analysts/analyst-relay.ts";
import { isResultFormat } from "../analysts/read-names.ts";
import { checkSetting, readStatement, type Unavailable, unknownFormat } from "../analysts/read-statement.ts";
import { analystLimits } from "../limits.ts";
import { EngineError } from "./engine-error.ts";

export interface AnalystScope {
  /** The one database that can be selected. */
  readonly database: string;
  readonly unavailable: Unavailable;
}

/** Parses a request (https://clickhouse.com/docs/interfaces/http). Throws `EngineError` if it cannot be served. */
export async function clickHouseHttpQuery(
  request: Request,
  scope: AnalystScope,
): Promise<Omit<AnalystQuery, "signal">> {
  const url = new URL(request.url);
  const asked = url.searchParams;
  const body = request.method === "POST" ? await readBody(request) : "";
  const text = [asked.get("query") ?? "", body].filter((part) => part !== "").join("\n");
  const statement = readStatement(text, scope.unavailable);
  const format = statement.format ?? asked.get("default_format") ?? request.headers.get("x-clickhouse-format");
  if (format !== null && !isResultFormat(format)) throw unknownFormat(format);
  const queryId = asked.get("query_id") ?? "";
  const isGzipped = asked.get("enable_http_compression") === "1" && accepts(request, "gzip");
  return {
    statement,
    isGzipped,
    members: {
      ...readMembers(asked),
      ...Object.fromEntries(Array.from(statement.settings, ([name, literal]) => [name, readLiteral(literal)])),
      database: readDatabase(request, asked, scope.database),
      query_id: /^[\w.:-]{1,128}$/.test(queryId) ? queryId : crypto.randomUUID(),
      ...(format === null ? {} : { default_format: format }),
      ...(isGzipped ? { enable_http_compression: "1" } : {}),
    },
  };
}

/** Members of the URL that are not settings, and that affect how the answer is sent. */
const PASSED_ON: ReadonlySet<string> = new Set(["wait_end_of_query", "buffer_size"]);

/** Members of the URL that are not settings, or request the default behaviour. */
const PROTOCOL: ReadonlySet<string> = new Set([
  "query",
  "database",
  "default_format",
  "query_id",
  "user",
  "password",
  "quota_key",
  "enable_http_compression",
  "http_zlib_compression_level",
  "http_response_compression_method",
  "send_progress_in_http_headers",
  "http_headers_progress_interval_ms",
  "http_wait_end_of_query",
  "http_response_buffer_size",
  "http_write_exception_in_output_format",
  "cancel_http_readonly_queries_on_client_close",
  "add_http_cors_header",
  "client_protocol_version",
  "stacktrace",
  "log_comment",
  "log_queries",
  "close_session",
  // A session's state does not outlive a request, so sessions can neither keep data nor block each other.
  "session_id",
  "session_timeout",
  "session_check",
  // Both are fixed here: writing is impossible, and there is only one user.
  "async_insert",
  "wait_for_async_insert",
]);

/** Returns settings, values of placeholders, and other members of the protocol that affect the answer. */
function readMembers(asked: URLSearchParams): Record<string, string> {
  const members: Record<string, string> = {};
  for (const [name, value] of asked) {
    if (name.startsWith("param_")) members[paramName(name)] = value;
    else if (name === "readonly" && /^[12]$/.test(value)) continue;
    else if (name === "max_result_bytes") continue;
    else if (name === "compress" || name === "decompress") checkCompression(name, value);
    else if (PASSED_ON.has(name)) members[name] = value;
    else if (!PROTOCOL.has(name)) {
      checkSetting(name);
      members[name] = value;
    }
  }
  return members;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", 0: "\0" };

/** Returns the value of a literal, as the URL contains it. */
function readLiteral(literal: string): string {
  if (!literal.startsWith("'")) return literal;
  return literal.slice(1, -1).replace(/\\([^])|''/g, (_, escaped?: string) => {
    return escaped === undefined ? "'" : (ESCAPES[escaped] ?? escaped);
  });
}

/** Returns the database. In another one, unqualified names would mean tables that must not be read. */
function readDatabase(request: Request, asked: URLSearchParams, database: string): string {
  const named = asked.get("database") ?? request.headers.get("x-clickhouse-database") ?? "";
  if (named === "" || named === database) return database;
  throw new EngineError(81, "UNKNOWN_DATABASE", `Only the database ${database} can be connected to here`);
}

function paramName(name: string): string {
  const own = name.slice("param_".length);
  if (/^[A-Za-z_]\w{0,63}$/.test(own)) return name;
  throw new EngineError(36, "BAD_ARGUMENTS", "The name of a query parameter is not an identifier");
}

function checkCompression(name: string, value: string): void {
  if (value === "0") return;
  const why = `ClickHouse's own block compression is not spoken here: set ${name}=0`;
  throw new EngineError(48, "NOT_IMPLEMENTED", `${why} (HTTP compression with gzip works)`);
}

async function readBody(request: Request): Promise<string> {
  if (/^multipart\//i.test(request.headers.get("content-type") ?? ""))
    throw new EngineError(48, "NOT_IMPLEMENTED", "Multipart requests are not taken: send query and param_* in the URL");
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.length > analystLimits.analystRequestBytesMax) throw TOO_LARGE;
  return new TextDecoder("utf-8", { fatal: true }).decode(unpacked(bytes, request.headers.get("content-encoding")));
}

function unpacked(bytes: Uint8Array, encoding: string | null): Uint8Array {
  const bound = { maxOutputLength: analystLimits.analystRequestBytesMax };
  try {
    switch (encoding?.trim().toLowerCase() ?? "") {
      case "":
      case "identity":
        return bytes;
      case "gzip":
        return gunzipSync(bytes, bound);
      case "deflate":
        return inflateSync(bytes, bound);
    }
  } catch (error) {
    if (error instanceof RangeError) throw TOO_LARGE;
    throw new EngineError(354, "ZLIB_INFLATE_FAILED", "The body is not what its Content-Encoding says");
  }
  throw new EngineError(48, "NOT_IMPLEMENTED", "Content-Encoding can be gzip or deflate");
}

const TOO_LARGE = new EngineError(307, "TOO_MANY_BYTES", "The request is longer than 256 KiB");

function accepts(request: Request, encoding: string): boolean {
  const offered = request.headers.get("accept-encoding")?.toLowerCase() ?? "";
  return offered.split(",").some((one) => one.split(";")[0]?.trim() === encoding);
}
