import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { type ClickHouseClient, type ClickHouseClientConfigOptions, createClient } from "@clickhouse/client";
import { type Calls, callName } from "../domain/calls.ts";

type Connection = NonNullable<ClickHouseClientConfigOptions["connection"]>;
/** Which of the engine's connections runs a statement: small statements never wait behind large ones. */
type Lane = "writer" | "reader" | "exporter" | "prober";

interface ServedEventStoreStatement {
  readonly lane: Lane;
  readonly query: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The rows of an insert. */
  readonly values: string | null;
}

const STATEMENT = callName<ServedEventStoreStatement, Uint8Array>("eventStore.statement");

export type EventStoreClients = Readonly<Record<Lane, ClickHouseClient>>;

/**
 * Lets another process use this process's ClickHouse engine, with all of this process's rights. A statement does not run if its
 * caller gives up or dies before it begins.
 */
export function serveChdb(clients: EventStoreClients, calls: Calls): void {
  calls.serve(STATEMENT, async ({ lane, query, params, values }, signal) => {
    const { stream } = await clients[lane].exec({
      query,
      query_params: params,
      abort_signal: signal,
      ...(values === null ? {} : { values: Readable.from([Buffer.from(values)], { objectMode: false }) }),
    });
    return await buffer(stream);
  });
}

/** The ClickHouse engine inside another process of this start, behind the official client. */
export function openRemoteChdb(calls: Calls): EventStoreClients & { close(): Promise<void> } {
  const over = (lane: Lane) => createClient({ connection: new RemoteConnection(calls, lane) });
  return {
    writer: over("writer"),
    reader: over("reader"),
    exporter: over("exporter"),
    prober: over("prober"),
    close: async () => {},
  };
}

/**
 * The client's connection hook. The engine computes a statement's whole result before it answers, so it arrives in one piece.
 */
class RemoteConnection implements Connection {
  constructor(
    private readonly calls: Calls,
    private readonly lane: Lane,
  ) {}

  ping: Connection["ping"] = async () => {
    try {
      await this.run({ query: "SELECT 1" });
      return { success: true };
    } catch (error) {
      return { success: false, error: error instanceof Error ? error : new Error(String(error)) };
    }
  };

  query: Connection["query"] = async (params) => ({ ...done(), stream: Readable.from([await this.run(params)]) });

  command: Connection["command"] = async (params) => {
    await this.run(params);
    return done();
  };

  exec: Connection["exec"] = async (params) => {
    const result = await this.run(params);
    return { ...done(), stream: Readable.from([result], { objectMode: false }) };
  };

  insert: Connection["insert"] = async (params) => {
    await this.run(params);
    return done();
  };

  close = () => Promise.resolve();

  private async run(params: StatementParams): Promise<Uint8Array> {
    const { query, query_params = {}, values, abort_signal } = params;
    const rows = values === undefined ? null : typeof values === "string" ? values : await text(values);
    const statement = { lane: this.lane, query, params: query_params, values: rows };
    return await this.calls.call(STATEMENT, statement, abort_signal);
  }
}

interface StatementParams {
  readonly query: string;
  readonly query_params?: Record<string, unknown>;
  readonly values?: string | Readable;
  readonly abort_signal?: AbortSignal;
}

function done() {
  return { query_id: crypto.randomUUID(), response_headers: {}, http_status_code: 200 };
}
