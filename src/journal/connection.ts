import { Cluster, Redis } from "ioredis";
import { TransportError, UnavailableError } from "../core/errors.ts";
import type { Telemetry } from "../core/telemetry.ts";

/** Where Redis is: one server by URL or unix socket, or the seeds of a cluster. */
export type RedisAddress =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "cluster"; readonly urls: readonly string[] };

export type RedisConnection = Redis | Cluster;

/** How long a command waits for its reply, a reconnect included, before its effect counts as unknown. */
const COMMAND_TIMEOUT_MS = 5_000;

/**
 * Opens a connection that reconnects by itself. A command that was under way when the connection broke is not sent
 * again behind our back: it rejects, because only its caller knows how to repeat it safely.
 */
export function connectRedis(address: RedisAddress, telemetry: Telemetry): RedisConnection {
  const connection = open(address);
  let reported = false;
  connection.on("error", (error: Error) => {
    if (!reported) telemetry.log("warn", "redis cannot be reached", { error: error.message });
    reported = true;
  });
  connection.on("ready", () => {
    if (reported) telemetry.log("info", "redis is back");
    reported = false;
  });
  return connection;
}

const OPTIONS = {
  autoResendUnfulfilledCommands: false,
  // Without this the commands that were under way when the connection broke are answered by their timeout only.
  maxRetriesPerRequest: 0,
  commandTimeout: COMMAND_TIMEOUT_MS,
  connectTimeout: COMMAND_TIMEOUT_MS,
} as const;

const reconnectDelayMs = (times: number) => Math.min(50 * times, 500);

function open(address: RedisAddress): RedisConnection {
  switch (address.kind) {
    case "url":
      return new Redis(address.url, { ...OPTIONS, retryStrategy: reconnectDelayMs });
    case "socket":
      return new Redis({ ...OPTIONS, path: address.path, retryStrategy: reconnectDelayMs });
    case "cluster":
      return new Cluster([...address.urls], {
        redisOptions: OPTIONS,
        clusterRetryStrategy: reconnectDelayMs,
        // A cluster's own queue has no deadline: while no node answers, commands are refused, and their callers repeat.
        enableOfflineQueue: false,
      });
  }
}

/** Replies that say: the command was refused before it did anything. */
const REFUSALS = /^(OOM|LOADING|BUSY|MISCONF|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS)\b/;

/** What a rejected command means to the engine. Anything but a refusal or a broken connection is a mistake of ours. */
export function redisFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error("redis failed", { cause: error });
  if (error.name === "ReplyError") {
    return REFUSALS.test(error.message) ? new UnavailableError("the journal refuses writes", { cause: error }) : error;
  }
  return new TransportError("the journal did not answer", { cause: error });
}
