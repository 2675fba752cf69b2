import { totalmem } from "node:os";

/** The address on which a private redis-server listens. */
export type RedisListener =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "loopback"; readonly port: number; readonly password: string };

/**
 * Builds the configuration of the private redis-server as the text of a redis.conf (Redis 7.0). Each difference from
 * Redis's defaults is explained; https://redis.io/docs/latest/operate/oss_and_stack/management/config/.
 */
export function redisConfig(folder: string, listener: RedisListener): string {
  return [
    ...listenerLines(listener),
    `dir ${quoted(folder)}`,
    "daemonize no",
    // The log goes to standard output, which the parent reads.
    'logfile ""',
    // It would quote the commands in progress, which contain messages.
    "crash-log-enabled no",

    // Redis replies only after the write is on disk, even while it rewrites the file: a 202 promises that.
    "appendonly yes",
    "appendfsync always",
    "no-appendfsync-on-rewrite no",
    // We cut off a torn tail ourselves, because Redis leaves a part of it (`torn-tail.ts`). Other damage stops the
    // start.
    "aof-load-truncated no",
    'save ""',

    // A full Redis refuses new jobs; it never evicts old ones, and does not exhaust the machine's memory.
    `maxmemory ${Math.floor(totalmem() / 2)}`,
    "maxmemory-policy noeviction",
    // A slip on a console must not empty the queue.
    'rename-command FLUSHALL ""',
    'rename-command FLUSHDB ""',
    'rename-command DEBUG ""',

    // Jobs and their events are small hashes, which take far less memory when packed.
    "hash-max-listpack-entries 256",
    "hash-max-listpack-value 256",
    "stream-node-max-bytes 4096",
    "stream-node-max-entries 100",
    "",
  ].join("\n");
}

function listenerLines(listener: RedisListener): readonly string[] {
  switch (listener.kind) {
    case "socket":
      return ["port 0", `unixsocket ${quoted(listener.path)}`, "unixsocketperm 700"];
    case "loopback":
      return [
        "bind 127.0.0.1",
        `port ${listener.port}`,
        "protected-mode yes",
        `requirepass ${quoted(listener.password)}`,
      ];
  }
}

/** Formats a redis.conf string: in double quotes, with every byte that could end it or the line escaped. */
function quoted(text: string): string {
  const escaped = Array.from(Buffer.from(text), (byte) =>
    byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c
      ? `\\x${byte.toString(16).padStart(2, "0")}`
      : String.fromCharCode(byte),
  );
  return `"${escaped.join("")}"`;
}
