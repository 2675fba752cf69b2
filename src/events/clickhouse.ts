import { addAbortSignal, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import type { Clock } from "../domain/clock.ts";
import { TransportError, UnavailableError } from "../domain/errors.ts";
import { type ClickHouseAddress, RowsRefusedError } from "../domain/jobs/event-store.ts";
import { limits } from "../domain/limits.ts";
import { eventLimits } from "./limits.ts";
import type { WriteGate } from "./write-gate.ts";

export interface ClickHouseOptions {
  readonly client: ClickHouseClient;
  readonly clock: Clock;
  /** The longest that any statement may take before its caller gets a timeout; inserts and reads have less. */
  readonly timeoutMs: number;
  /** The gate for statements that write; absent: they are never held back. */
  readonly gate?: WriteGate;
}

/** Values by their names in a statement. */
export type QueryParams = Readonly<Record<string, string | number>>;

/** Statements with a deadline. A statement's text contains everything it needs, including settings. */
export class ClickHouse {
  constructor(private readonly options: ClickHouseOptions) {}

  /** Runs a statement without a result. Rejects with `TransportError`. */
  async command(sql: string): Promise<void> {
    await this.answer(
      this.options.timeoutMs,
      async (signal) => {
        await this.written(async () => {
          await drained((await this.options.client.exec({ query: sql, abort_signal: signal })).stream, signal);
        }, signal);
      },
      (cause) => new TransportError(`clickhouse did not confirm a statement: ${saidBy(cause)}`, { cause }),
    );
  }

  /**
   * Runs `INSERT … FORMAT …` with the data in `body`. Rejects with `RowsRefusedError` if the server reports invalid data,
   * otherwise with `TransportError`: some rows may be stored, and the caller's token makes repeating safe.
   */
  async insert(sql: string, body: string): Promise<void> {
    await this.answer(
      Math.min(this.options.timeoutMs, limits.eventStoreInsertTimeoutMs),
      async (signal) => {
        const values = Readable.from([Buffer.from(body)], { objectMode: false });
        await this.written(async () => {
          const { stream } = await this.options.client.exec({ query: sql, values, abort_signal: signal });
          await drained(stream, signal);
        }, signal);
      },
      (cause) => {
        if (isAboutData(cause)) return new RowsRefusedError(`clickhouse refused rows: ${saidBy(cause)}`, { cause });
        return new TransportError(`clickhouse did not confirm an insert: ${saidBy(cause)}`, { cause });
      },
    );
  }

  /**
   * The rows of a SELECT, one array of column values per row. `params` are bound to its `{name:Type}` placeholders. Rejects
   * with `UnavailableError`.
   */
  rows(sql: string, params: QueryParams = {}): Promise<readonly (readonly unknown[])[]> {
    return this.answer(
      Math.min(this.options.timeoutMs, eventLimits.eventStoreReadTimeoutMs),
      async (signal) => {
        // One JSON document rather than one line per row: a truncated answer then never passes for a short one.
        const result = await this.options.client.query({
          query: sql,
          query_params: { ...params },
          format: "JSONCompact",
          abort_signal: signal,
        });
        signal.addEventListener("abort", () => result.close(), { once: true });
        const answer = await result.json<readonly unknown[]>();
        // Servers from 23.9 to 25.10 complete the document when a statement fails after its first rows.
        if ("exception" in answer) throw new Error(`it failed midway: ${String(answer.exception)}`);
        return answer.data;
      },
      notAnswered,
    );
  }

  /** The whole answer, unparsed, of a statement that names its own format. Rejects with `UnavailableError`. */
  bytes(sql: string): Promise<Buffer> {
    return this.answer(
      Math.min(this.options.timeoutMs, eventLimits.eventStoreReadTimeoutMs),
      async (signal) => {
        const { stream } = await this.options.client.exec({ query: sql, abort_signal: signal });
        return buffer(addAbortSignal(signal, stream));
      },
      notAnswered,
    );
  }

  /**
   * The same in chunks, as they arrive; each must arrive within a statement's deadline. Throws `UnavailableError`. Ending the
   * iteration or aborting `signal` cancels the answer.
   */
  async *stream(sql: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { timeoutMs } = this.options;
    const begin = async (deadline: AbortSignal) => {
      const abort_signal = AbortSignal.any([signal, deadline]);
      return (await this.options.client.exec({ query: sql, abort_signal })).stream;
    };
    const stream = await this.answer(timeoutMs, begin, notAnswered);
    const giveUp = () => stream.destroy(new Error("given up"));
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      const chunks = stream[Symbol.asyncIterator]();
      for (;;) {
        const next = await this.answer(timeoutMs, () => chunks.next(), notAnswered);
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      signal.removeEventListener("abort", giveUp);
      stream.destroy();
    }
  }

  private written(write: () => Promise<void>, signal: AbortSignal): Promise<void> {
    return this.options.gate?.pass(write, signal) ?? write();
  }

  /** The call's answer. A call that ignores its signal is abandoned at the deadline. */
  private async answer<T>(
    timeoutMs: number,
    call: (signal: AbortSignal) => Promise<T>,
    failure: (cause: unknown) => Error,
  ): Promise<T> {
    const caller = new AbortController();
    return new Promise<T>((resolve, reject) => {
      const timer = this.options.clock.setTimer(timeoutMs, () => {
        reject(failure(new Error(`no answer in ${timeoutMs} ms`)));
        caller.abort();
      });
      (async () => call(caller.signal))().then(
        (value) => {
          timer.cancel();
          resolve(value);
        },
        (cause: unknown) => {
          timer.cancel();
          reject(failure(cause));
        },
      );
    });
  }
}

/**
 * A connection whose answer is not read to the end cannot be reused. The client heeds its signal only until an answer begins: one that
 * stops midway would keep its connection for two minutes.
 */
async function drained(stream: Readable, signal: AbortSignal): Promise<void> {
  addAbortSignal(signal, stream).resume();
  await finished(stream);
}

/**
 * ClickHouse's error codes for data it cannot take: text that does not parse as its column's type, unknown enum values, numbers
 * out of range, violated constraints. All other errors concern the server or the table.
 */
const DATA_ERRORS: ReadonlySet<string> = new Set(
  [6, 25, 26, 27, 38, 41, 53, 69, 70, 72, 117, 130, 131, 321, 349, 376, 407, 469, 691].map(String),
);

function isAboutData(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && DATA_ERRORS.has(String(cause.code));
}

/** After these words the server quotes rows, values and the statement, which must not be logged. */
const QUOTES = /:? ?\(at row|:? ?while (executing|processing|parsing)|:? before: |:? ?in scope |parsed text:/i;
const COLUMN = /\(while reading the value of key (\w{1,40})\)/;
const SAID_CHARS_MAX = 300;

function saidBy(cause: unknown): string {
  const all = String(cause);
  // Only the server's own errors contain rows after the first line; a proxy's page explains itself further down.
  const isServers = cause instanceof Error && "code" in cause;
  const line = isServers ? (all.split("\n")[0] ?? "") : all.replace(/\s+/g, " ");
  const at = line.search(QUOTES);
  const said = line.slice(0, at === -1 ? SAID_CHARS_MAX : Math.min(at, SAID_CHARS_MAX));
  const column = COLUMN.exec(all)?.[1];
  return column === undefined || said.includes(`key ${column}`) ? said : `${said} (column ${column})`;
}

function notAnswered(cause: unknown): UnavailableError {
  return new UnavailableError(`clickhouse did not answer: ${saidBy(cause)}`, { cause });
}

/** A ClickHouse server behind the official client. */
export interface ClickHouseServer {
  readonly writer: ClickHouseClient;
  readonly reader: ClickHouseClient;
  readonly exporter: ClickHouseClient;
  readonly prober: ClickHouseClient;
  close(): Promise<void>;
}

/** Longer than all of our own deadlines, so the client never gives up first. */
const REQUEST_TIMEOUT_MS = 120_000;
const WRITER_SOCKETS_MAX = 16;
const READER_SOCKETS_MAX = 16;

/**
 * Creates the clients, which connect at their first statement. Readers, writers and the probe have separate sockets, so readers
 * do not wait behind inserts, and the probe does not wait at all.
 */
export function connectClickHouse(address: ClickHouseAddress): ClickHouseServer {
  const writer = connect(address, WRITER_SOCKETS_MAX);
  const reader = connect(address, READER_SOCKETS_MAX);
  const exporter = connect(address, eventLimits.exportsMax + 1);
  const prober = connect(address, 1);
  return {
    writer,
    reader,
    exporter,
    prober,
    async close() {
      await Promise.all([writer, reader, exporter, prober].map((each) => each.close()));
    },
  };
}

function connect({ url, user, password }: ClickHouseAddress, socketsMax: number): ClickHouseClient {
  return createClient({
    url,
    username: user,
    password,
    application: "waybill",
    request_timeout: REQUEST_TIMEOUT_MS,
    max_open_connections: socketsMax,
    // A statement sent on a socket that the server has closed meanwhile fails; servers wait 3 s or longer.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500, eagerly_destroy_stale_sockets: true },
    // Callers log failures themselves, with their own context.
    log: { level: ClickHouseLogLevel.OFF },
  });
}
