import { Cluster, type Redis } from "ioredis";
import { type Clock, sleep } from "../../domain/clock.ts";
import { ConfigurationError, UnavailableError } from "../../domain/errors.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type RedisAddress, type RedisConnection, RedisConnector, redisFailure } from "./connection.ts";
import { Meta } from "./format.ts";

/** The facts that one Redis server reports. Null: not reported. */
export interface RedisFacts {
  /** `host:port`, or the path of its socket. */
  readonly place: string;
  /** The server's own name and version, such as `Redis 8.0.2` or `valkey 8.1.1`. */
  readonly software: string | null;
  /** The version of Redis whose commands it has: Valkey 8 reports 7.2.4. */
  readonly version: string | null;
  readonly isCluster: boolean;
  readonly isReplica: boolean;
  readonly hasAppendOnlyFile: boolean | null;
  readonly evictionPolicy: string | null;
  /** Null also if the command CONFIG is forbidden. */
  readonly appendFsync: string | null;
  /**
   * Whether it starts with a file whose last write was torn by a crash (`aof-load-truncated`). Null also if CONFIG is
   * forbidden.
   */
  readonly loadsTornFile: boolean | null;
  readonly replicas: number;
}

export interface RedisInspectionOptions {
  readonly address: RedisAddress;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How long to wait for the first answer. */
  readonly withinMs: number;
}

/** Inspects Redis briefly before any work on it: the kind of server, and the queue's identity. */
export class RedisInspection {
  /** The queue's own settings and identity. */
  readonly meta: Meta;

  private constructor(
    readonly connection: RedisConnection,
    telemetry: Telemetry,
  ) {
    this.meta = new Meta(connection, telemetry);
  }

  /** Rejects with `UnavailableError` if no server answers. */
  static async open({ address, clock, telemetry, withinMs }: RedisInspectionOptions): Promise<RedisInspection> {
    const connection = new RedisConnector(address, { clock, telemetry }).connect();
    let lastError = "";
    connection.on("error", (error: Error & { readonly lastNodeError?: Error }) => {
      lastError = (error.lastNodeError ?? error).message;
    });
    const giveUpAtMs = clock.monotonicMs() + withinMs;
    while (connection.status !== "ready") {
      if (clock.monotonicMs() > giveUpAtMs || isNoCluster(lastError)) {
        connection.disconnect();
        throw isNoCluster(lastError) ? NO_CLUSTER : notAnswered(lastError);
      }
      await sleep(clock, 20);
    }
    return new RedisInspection(connection, telemetry);
  }

  /** Returns the server; in a cluster each master. */
  async servers(): Promise<readonly RedisFacts[]> {
    const { connection } = this;
    const nodes = connection instanceof Cluster ? connection.nodes("master") : [connection];
    try {
      return await Promise.all(nodes.map(readFacts));
    } catch (error) {
      throw redisFailure(error);
    }
  }

  close(): Promise<void> {
    this.connection.disconnect();
    return Promise.resolve();
  }
}

const NO_CLUSTER = new ConfigurationError(
  "REDIS_URL names several servers, and they are no Redis Cluster: name the one server, or nodes of a cluster.",
);

function isNoCluster(message: string): boolean {
  return message.includes("cluster support disabled");
}

function notAnswered(lastError: string): UnavailableError {
  return new UnavailableError(
    `no Redis answers at the address in REDIS_URL${lastError === "" ? "" : ` (${lastError})`}`,
  );
}

async function readFacts(node: Redis): Promise<RedisFacts> {
  // One call per section: servers before version 7 take a single name.
  const sections = ["server", "persistence", "memory", "replication", "cluster"] as const;
  const texts = await Promise.all(sections.map((section) => node.info(section)));
  const info = new Map(
    texts
      .join("\n")
      .split(/\r?\n/)
      .map((line) => splitPair(line)),
  );
  return {
    place: formatAddress(node),
    software: readSoftware(info),
    version: info.get("redis_version") ?? null,
    isCluster: info.get("cluster_enabled") === "1",
    isReplica: info.get("role") === "slave",
    hasAppendOnlyFile: info.has("aof_enabled") ? info.get("aof_enabled") === "1" : null,
    evictionPolicy: info.get("maxmemory_policy") ?? null,
    appendFsync: await readSetting(node, "appendfsync"),
    loadsTornFile: isOn(await readSetting(node, "aof-load-truncated")),
    replicas: Number(info.get("connected_slaves") ?? 0),
  };
}

/** Servers that descend from Redis report `server_name`, and their own version under that name. */
function readSoftware(info: ReadonlyMap<string, string>): string | null {
  const name = info.get("server_name") ?? "redis";
  const version = info.get(`${name}_version`) ?? info.get("redis_version");
  if (version === undefined) return null;
  return `${name === "redis" ? "Redis" : name} ${version}`;
}

function isOn(setting: string | null): boolean | null {
  return setting === null ? null : setting === "yes";
}

/** Hosted servers often forbid CONFIG. */
async function readSetting(node: Redis, name: string): Promise<string | null> {
  const reply: unknown = await node.config("GET", name).catch(() => null);
  return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : null;
}

export function formatAddress({ options }: Redis): string {
  return options.path ?? `${options.host ?? "localhost"}:${options.port ?? 6379}`;
}

function splitPair(line: string): [string, string] {
  const colon = line.indexOf(":");
  return colon === -1 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1)];
}
