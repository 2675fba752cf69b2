import { SQL } from "bun";
import { drizzle } from "drizzle-orm/bun-sql";
import { ConfigurationError, UnavailableError } from "../../domain/errors.ts";
import type { OpenDatabase } from "./database.ts";
import { PostgresPool } from "./postgres-pool.ts";
import { sqlState } from "./sql-state.ts";

const CONNECTIONS_MAX = 10;
const CONNECT_TIMEOUT_SECONDS = 5;
/**
 * Shorter than the server's limit (`idle_session_timeout`), which could end a session while a statement is on its way.
 */
const IDLE_SECONDS = 45;

/**
 * Settings of every session. The server ends sessions that their client has forgotten, so no lock outlives a lost
 * process, and dead connections do not use up its `max_connections`. The pool reopens connections as needed.
 */
const SESSION = {
  application_name: "waybill",
  statement_timeout: "9000",
  idle_in_transaction_session_timeout: "9000",
  idle_session_timeout: "60000",
  tcp_keepalives_idle: "30",
  tcp_keepalives_interval: "10",
  tcp_keepalives_count: "3",
  // Bun.SQL prints notices ("schema exists already, skipping") to stderr.
  client_min_messages: "warning",
} as const;

/**
 * Connects to a PostgreSQL server (15 or later) and checks that it accepts the login. Rejects with `ConfigurationError`
 * if the URL, the login or the database is wrong, with `UnavailableError` if the server does not answer. The pool later
 * reconnects by itself, and replaces dead connections on request.
 */
export async function connectPostgres(url: string): Promise<OpenDatabase> {
  const place = formatLocation(url);
  const connect = () =>
    new SQL({
      url,
      adapter: "postgres",
      max: CONNECTIONS_MAX,
      connectionTimeout: CONNECT_TIMEOUT_SECONDS,
      idleTimeout: IDLE_SECONDS,
      connection: SESSION,
    });
  const pool = await PostgresPool.open(connect).catch((error: unknown) => {
    throw connectFailure(error, place);
  });
  // Drizzle's driver calls only the methods that the pool forwards.
  const client = pool.client as SQL;
  return { db: drizzle({ client }), close: () => pool.close(), onSilence: () => pool.replace() };
}

/** Returns `host:port/database` of the URL: the part that may be displayed. */
function formatLocation(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new ConfigurationError("DATABASE_URL must have the form postgres://user:password@host:5432/database.");
  }
  return `${parsed.host || "localhost"}${parsed.pathname}`;
}

function connectFailure(error: unknown, place: string): Error {
  const { state } = sqlState(error);
  if (state?.startsWith("28")) {
    return new ConfigurationError(`PostgreSQL at ${place} refuses the user or password of DATABASE_URL.`);
  }
  if (state === "3D000") {
    return new ConfigurationError(`PostgreSQL at ${place} has no database of that name: create it, then start again.`);
  }
  return new UnavailableError(`No PostgreSQL answers at ${place} (DATABASE_URL).`, { cause: error });
}
