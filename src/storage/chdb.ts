import { mkdirSync } from "node:fs";
import { type ClickHouseClient, type ClickHouseClientConfigOptions, createClient } from "@clickhouse/client";
import { Session } from "chdb";
import { createChdbConnection } from "chdb/connection";
import type { Calls } from "../domain/calls.ts";
import { writeAnalystAccess } from "./analyst-access.ts";
import { writeEngineConfig } from "./engine-config.ts";
import { serveChdb } from "./served-chdb.ts";

type Connection = NonNullable<ClickHouseClientConfigOptions["connection"]>;

/** ClickHouse inside this process, behind the official client: some connections write, some read, one exports, one probes. */
export interface Chdb {
  readonly writer: ClickHouseClient;
  readonly reader: ClickHouseClient;
  /** For statements that take minutes, which readers must not wait behind. */
  readonly exporter: ClickHouseClient;
  /** For the probe, which must not wait behind what others ask. */
  readonly prober: ClickHouseClient;
  /** Lets another process of this start use it. */
  serveTo(calls: Calls): void;
  /**
   * Waits until no statement writes, and lets none begin while `work` runs, but those of the client that it gets. Readers and
   * exporters go on.
   */
  hold<T>(work: (alone: ClickHouseClient) => Promise<T>): Promise<T>;
  /** Waits for the running statements, then releases the folder. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Opens the engine on a folder, which is created if missing. The engine allows one folder per process and one process per
 * folder, and throws otherwise. Opening an existing folder blocks the event loop for up to a second.
 *
 * Settings belong in the SQL text: passed as `clickhouse_settings` they would stay with the connection, and a leftover
 * deduplication token makes the engine silently drop the next insert. A `Lane` refuses them.
 */
export function openChdb(path: string, access: AnalystAccess | null = null): Chdb {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  // The engine takes its configuration from a process's first session only.
  const first = openConfigured(path, access);
  const writing = openLanes(path, WRITERS);
  const writer = createClient({ connection: writing });
  const reader = createClient({ connection: openLanes(path, READERS) });
  const exporter = createClient({ connection: openLanes(path, 1) });
  const prober = createClient({ connection: openLanes(path, 1) });
  first.close();
  let closed: Promise<void> | null = null;
  return {
    writer,
    reader,
    exporter,
    prober,
    serveTo: (calls) => serveChdb({ writer, reader, exporter, prober }, calls),
    hold: (work) => writing.hold(work),
    close() {
      closed ??= Promise.all([writer, reader, exporter, prober].map((each) => each.close())).then(() => undefined);
      return closed;
    },
  };
}

/**
 * Allows some of the engine's sessions to be restricted to an analyst's rights (see `analyst-access.ts`). The others keep every
 * right.
 */
export interface AnalystAccess {
  /** The folder for the files that define those rights. */
  readonly folder: string;
  /** The database that analysts may read. */
  readonly database: string;
}

function openConfigured(path: string, access: AnalystAccess | null): Session {
  const usersFile = access === null ? null : writeAnalystAccess(access.folder, access.database);
  return new Session(path, { connectionArgs: [`--config-file=${writeEngineConfig(path, usersFile)}`] });
}

/**
 * How many statements of a kind run at once. An insert spends half its time waiting for the disk. Measured on two busy cores
 * with sixteen busy shards: events become visible within 0.8 s with two writers, 2 s with one, and no sooner with four.
 */
const WRITERS = 2;
const READERS = 2;

function openLanes(path: string, lanes: number): Lanes {
  return new Lanes(Array.from({ length: lanes }, () => openLane(path)));
}

function openLane(path: string): Lane {
  // The driver implements this interface, but against its own copy of the client's declarations.
  return new Lane(createChdbConnection({ path }) as unknown as Connection);
}

/** Connections that share the load: each statement goes to the one with the fewest waiting. */
class Lanes implements Connection {
  constructor(private readonly lanes: readonly Lane[]) {}

  ping: Connection["ping"] = (params) => this.next().ping(params);
  query: Connection["query"] = (params) => this.next().query(params);
  insert: Connection["insert"] = (params) => this.next().insert(params);
  command: Connection["command"] = (params) => this.next().command(params);
  exec: Connection["exec"] = (params) => this.next().exec(params);

  async close(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => lane.close()));
  }

  /** Runs `work` between the statements of all lanes. */
  async hold<T>(work: (alone: ClickHouseClient) => Promise<T>): Promise<T> {
    const holds = this.lanes.map((lane) => lane.hold());
    try {
      const alone = await Promise.all(holds.map(({ begun }) => begun));
      return await work(createClient({ connection: new Lanes(alone) }));
    } finally {
      for (const { end } of holds) end();
    }
  }

  private next(): Lane {
    return this.lanes.reduce((best, lane) => (lane.waiting < best.waiting ? lane : best));
  }
}

/**
 * A connection that runs one statement at a time, in order of arrival.
 *
 * The engine serializes a connection's statements anyway, but in no particular order, and each waiting statement holds a thread
 * of the process's pool; a few slow inserts would then stop the reading connection as well.
 *
 * Invariants:
 * C1. A statement begins only after the engine has finished the one before, whether or not its caller still waits.
 * C2. A statement whose caller has given up is not begun. One that has begun cannot be cancelled: its promise settles when the
 *     engine finishes, so a caller with a deadline races it.
 * C3. The connection closes after its last statement, because the engine aborts the process if it is closed in the middle of
 *     one.
 */
class Lane implements Connection {
  waiting = 0;
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

  /**
   * Takes a turn in which nothing runs, until it is ended, but the statements of the lane that it begins with. One of those that
   * is under way when it is ended is waited for (C1).
   */
  hold(): { readonly begun: Promise<Lane>; end(): void } {
    const begun = Promise.withResolvers<Lane>();
    const ended = Promise.withResolvers<void>();
    void this.inTurn({}, async () => {
      const alone = new Lane(this.inner);
      begun.resolve(alone);
      await ended.promise;
      await alone.tail;
    });
    return { begun: begun.promise, end: ended.resolve };
  }

  private inTurn<P extends StatementParams, T>(params: P, run: (own: P) => Promise<T>): Promise<T> {
    const { abort_signal: signal, clickhouse_settings: settings, ...rest } = params;
    const leaking = Object.keys(settings ?? {}).filter((name) => !HTTP_SETTINGS.has(name));
    if (leaking.length > 0)
      return Promise.reject(new Error(`settings belong into the SQL text: ${leaking.join(", ")}`));
    // Both omitted members are optional in every P.
    const own = rest as P;
    const result = this.tail.then(() => {
      signal?.throwIfAborted();
      return run(own);
    });
    this.waiting += 1;
    this.tail = result.catch(() => undefined).finally(() => (this.waiting -= 1));
    return result;
  }
}

interface StatementParams {
  readonly abort_signal?: AbortSignal;
  readonly clickhouse_settings?: object;
}

/** Settings that the client adds for HTTP; the engine has no use for them. */
const HTTP_SETTINGS: ReadonlySet<string> = new Set(["wait_end_of_query"]);
