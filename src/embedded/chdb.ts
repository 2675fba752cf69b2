import { mkdirSync } from "node:fs";
import { type ClickHouseClient, type ClickHouseClientConfigOptions, createClient } from "@clickhouse/client";
import { createChdbConnection } from "chdb/connection";

type Connection = NonNullable<ClickHouseClientConfigOptions["connection"]>;

/** ClickHouse inside this process, behind the official client: one connection writes, another reads. */
export interface Chdb {
  readonly writer: ClickHouseClient;
  readonly reader: ClickHouseClient;
  /** Waits for what is under way, then lets go of the folder. Safe to repeat. */
  close(): Promise<void>;
}

/**
 * Opens the engine on a folder, which is made if it is missing. The engine takes one folder a process and one process a
 * folder; it throws where either is broken. Opening an existing folder blocks the event loop for up to a second.
 *
 * Settings belong into the SQL text: as `clickhouse_settings` they would stay with the connection, and a deduplication
 * token that stays makes the engine drop the next insert without a word. `SerialConnection` refuses them.
 */
export function openChdb(path: string): Chdb {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const writer = openClient(path);
  const reader = openClient(path);
  let closed: Promise<void> | null = null;
  return {
    writer,
    reader,
    close() {
      closed ??= Promise.all([writer.close(), reader.close()]).then(() => undefined);
      return closed;
    },
  };
}

function openClient(path: string): ClickHouseClient {
  // The driver implements this very interface, but against its own copy of the client's declarations.
  const connection = createChdbConnection({ path }) as unknown as Connection;
  return createClient({ connection: new SerialConnection(connection) });
}

/**
 * Runs one statement at a time, in order of arrival.
 *
 * The engine serialises a connection's statements anyway, but in no order, and each of those that wait holds a thread
 * of the process's pool; a few slow inserts would then stop the reading connection, too.
 *
 * Invariants:
 * C1. A statement begins only after the engine is done with the one before, whether or not its caller still waits.
 * C2. A statement whose caller has given up is not begun. One that has begun cannot be called off: its promise settles
 *     when the engine does, so a caller with a deadline races it.
 * C3. The connection closes after its last statement: the engine aborts the process when it is closed in the midst of one.
 */
class SerialConnection implements Connection {
  private tail: Promise<unknown> = Promise.resolve();

  constructor(private readonly inner: Connection) {}

  ping: Connection["ping"] = (params) => this.inTurn(params, (own) => this.inner.ping(own));
  query: Connection["query"] = (params) => this.inTurn(params, (own) => this.inner.query(own));
  insert: Connection["insert"] = (params) => this.inTurn(params, (own) => this.inner.insert(own));
  command: Connection["command"] = (params) => this.inTurn(params, (own) => this.inner.command(own));
  exec: Connection["exec"] = (params) => this.inTurn(params, (own) => this.inner.exec(own));

  close(): Promise<void> {
    return this.inTurn({}, () => this.inner.close());
  }

  private inTurn<P extends StatementParams, T>(params: P, run: (own: P) => Promise<T>): Promise<T> {
    const { abort_signal: signal, clickhouse_settings: settings, ...rest } = params;
    const leaking = Object.keys(settings ?? {}).filter((name) => !HTTP_SETTINGS.has(name));
    if (leaking.length > 0)
      return Promise.reject(new Error(`settings belong into the SQL text: ${leaking.join(", ")}`));
    // Both members that are left out are optional in every P.
    const own = rest as P;
    const result = this.tail.then(() => {
      signal?.throwIfAborted();
      return run(own);
    });
    this.tail = result.catch(() => undefined);
    return result;
  }
}

interface StatementParams {
  readonly abort_signal?: AbortSignal;
  readonly clickhouse_settings?: object;
}

/** What the client adds by itself for the sake of HTTP; the engine has no use for it. */
const HTTP_SETTINGS: ReadonlySet<string> = new Set(["wait_end_of_query"]);
