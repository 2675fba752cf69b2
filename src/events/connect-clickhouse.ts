import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { eventLimits } from "./limits.ts";

export interface ClickHouseAddress {
  /** `http://…` or `https://…`, without credentials. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
}

/** A ClickHouse server behind the official client. */
export interface ClickHouseServer {
  readonly writer: ClickHouseClient;
  readonly reader: ClickHouseClient;
  readonly exporter: ClickHouseClient;
  close(): Promise<void>;
}

/** Longer than all of our own deadlines, so the client never gives up first. */
const REQUEST_TIMEOUT_MS = 120_000;
const WRITER_SOCKETS_MAX = 16;
const READER_SOCKETS_MAX = 16;

/**
 * Creates the clients, which connect at their first statement. Readers and writers have separate sockets, so readers do not
 * wait behind inserts.
 */
export function connectClickHouse(address: ClickHouseAddress): ClickHouseServer {
  const writer = connect(address, WRITER_SOCKETS_MAX);
  const reader = connect(address, READER_SOCKETS_MAX);
  const exporter = connect(address, eventLimits.exportsMax + 1);
  return {
    writer,
    reader,
    exporter,
    async close() {
      await Promise.all([writer.close(), reader.close(), exporter.close()]);
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
    // Callers log failures themselves, with what they mean to them.
    log: { level: ClickHouseLogLevel.OFF },
  });
}
