import { type ChainableCommander, Cluster, Redis } from "ioredis";
import { type BackOffBounds, backOffMs } from "../../domain/back-off.ts";
import { TransportError, UnavailableError } from "../../domain/errors.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { extractHost } from "../../domain/texts/host.ts";

/** The address of Redis: one server by URL or unix socket, or the seeds of a cluster. */
export type RedisAddress =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "cluster"; readonly urls: readonly string[] };

export type RedisConnection = Redis | Cluster;

/** Opens connections to one Redis. */
export interface RedisConnections {
  connect(): RedisConnection;
  /** One for subscriptions; `peer` is a connection of `connect`. */
  connectToHear(peer: RedisConnection): Redis;
}

/**
 * How long a command waits for its reply, including a reconnect, before its effect counts as unknown; and how long a
 * connection with a command in flight may be silent before it is replaced.
 */
const COMMAND_TIMEOUT_MS = 5_000;
/** How often an idle connection is pinged: otherwise the next command would discover that it is dead. */
const PING_MS = 1_000;

type Delay = (times: number) => number;

/** The address of Redis, or what opens its connections. */
export type RedisPlace = RedisAddress | RedisConnections;

export function connectionsTo(
  place: RedisPlace,
  ports: ConstructorParameters<typeof RedisConnector>[1],
): RedisConnections {
  return "connect" in place ? place : new RedisConnector(place, ports);
}

/** Opens connections to one Redis. When Redis is away it logs that once, however many connections are affected. */
export class RedisConnector implements RedisConnections {
  private readonly away = new Set<RedisConnection>();
  private readonly delay: Delay = (times) => backOffMs(RECONNECT, times - 1, this.ports.random ?? { next: () => 1 });

  constructor(
    private readonly address: RedisAddress,
    /** Without `random`, reconnects are not spread over time: for a connection that lives for a moment. */
    private readonly ports: Omit<RuntimePorts, "random"> & Partial<RuntimePorts>,
  ) {}

  /**
   * Opens a connection that reconnects by itself. A command that was in flight when the connection broke is not resent
   * automatically: it rejects, because only its caller knows how to repeat it safely. A connection whose peer has
   * disappeared silently is replaced within `COMMAND_TIMEOUT_MS` and `PING_MS`, in use or not.
   */
  connect(): RedisConnection {
    return this.watched(open(this.address, this.delay));
  }

  /**
   * Opens a connection for subscriptions. In a cluster every node forwards the messages published at any other, so the
   * connection goes to one node, and after each break to another: the cluster client's own subscription connection has
   * no deadline, and does not detect that it is silent. `peer` is a connection from `connect`, whose nodes are used.
   */
  connectToHear(peer: RedisConnection): Redis {
    const { address } = this;
    if (!(peer instanceof Cluster)) return this.watched(peer.duplicate());
    return this.watched(openAnyNode(address.kind === "cluster" ? address.urls : [], peer, this.delay));
  }

  private watched<C extends RedisConnection>(connection: C): C {
    connection.on("error", (error: Error) => {
      if (this.away.size === 0) this.ports.telemetry.log("warn", "redis cannot be reached", { error: error.message });
      this.away.add(connection);
    });
    connection.on("ready", () => {
      if (this.away.delete(connection) && this.away.size === 0) this.ports.telemetry.log("info", "redis is back");
    });
    this.watch(connection);
    return connection;
  }

  /** Watches an idle connection; with a command in flight, `socketTimeout` detects the silence itself. */
  private watch(connection: RedisConnection): void {
    const ping = () => {
      if (connection.status === "end") return;
      const nodes = connection instanceof Cluster ? connection.nodes("master") : [connection];
      for (const node of nodes) if (node.status === "ready") node.ping().catch(() => {});
      this.ports.clock.setTimer(PING_MS, ping);
    };
    this.ports.clock.setTimer(PING_MS, ping);
  }
}

const OPTIONS = {
  autoResendUnfulfilledCommands: false,
  // The client resubscribes once, and if that fails, the connection receives no messages (`hearNews`).
  autoResubscribe: false,
  // A server that has become a replica refuses writes as long as its connections last. Where the address leads to the new
  // master, only another connection gets there.
  reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  // Without this, commands in flight when the connection breaks end only at their timeout.
  maxRetriesPerRequest: 0,
  commandTimeout: COMMAND_TIMEOUT_MS,
  socketTimeout: COMMAND_TIMEOUT_MS,
  connectTimeout: COMMAND_TIMEOUT_MS,
} as const;

const DEFAULT_PORT = 6379;

const RECONNECT: BackOffBounds = { firstMs: 50, maxMs: 500 };

function open(address: RedisAddress, delay: Delay): RedisConnection {
  switch (address.kind) {
    case "url":
      return new Redis(address.url, { ...OPTIONS, retryStrategy: delay });
    case "socket":
      return new Redis({ ...OPTIONS, path: address.path, retryStrategy: delay });
    case "cluster":
      return openCluster(address.urls, delay);
  }
}

function openCluster(urls: readonly string[], delay: Delay): Cluster {
  const cluster = new Cluster([...urls], {
    redisOptions: OPTIONS,
    clusterRetryStrategy: delay,
    // A cluster client's own queue has no deadline: while no node answers, commands are refused, and their callers
    // repeat them.
    enableOfflineQueue: false,
  });
  return cluster.on("+node", rejectSentOnBreak).on("+node", expectAskingToFail);
}

/** The queues of a connection: commands that were not sent, and commands that were sent and have no reply. */
type Queues = "offlineQueue" | "commandQueue";

/**
 * Rejects the commands of a broken connection, with another error for commands that were sent than for those that were
 * not. A cluster's client silently resends commands that were rejected with "Connection is closed", although only the
 * caller knows how to repeat them safely.
 */
function rejectSentOnBreak(node: Redis): void {
  // Its types declare the method private, but the two can be distinguished only here.
  const flushing = node as unknown as { flushQueue(error: Error, queues?: Partial<Record<Queues, boolean>>): void };
  const flush = flushing.flushQueue.bind(node);
  flushing.flushQueue = (error, queues) => {
    flush(new Error("the connection broke before the reply"), { ...queues, offlineQueue: false });
    flush(error, { ...queues, commandQueue: false });
  };
}

/**
 * Handles the rejection of ASKING. While a slot moves, the client sends ASKING before a command and ignores its result:
 * on a broken connection that would be an unhandled rejection, which is harmless only while the main module still
 * awaits something. The command itself fails with it.
 */
function expectAskingToFail(node: Redis): void {
  const ask = node.asking.bind(node);
  node.asking = () => {
    const reply = ask();
    reply.catch(() => {});
    return reply;
  };
}

function openAnyNode(urls: readonly string[], cluster: Cluster, delay: Delay): Redis {
  const seeds = urls.map((url) => {
    const at = new URL(url);
    return { host: extractHost(at), port: Number(at.port) || DEFAULT_PORT };
  });
  let turns = 0;
  const retryStrategy = (times: number) => {
    const { host, port } = connection.options;
    const known = cluster.nodes("all").map(({ options }) => ({ host: options.host, port: options.port }));
    const others = [...known, ...seeds].filter((place) => place.host !== host || place.port !== port);
    turns += 1;
    Object.assign(connection.options, others[turns % others.length]);
    return delay(times);
  };
  const connection: Redis = new Redis(urls[0] ?? "", { ...OPTIONS, retryStrategy });
  // It may have left the cluster, and then receives no messages.
  cluster.on("-node", ({ options: { host, port } }: Redis) => {
    if (host === connection.options.host && port === connection.options.port) connection.disconnect(true);
  });
  return connection;
}

/** Replies to a command that was refused before it had any effect. */
const REFUSALS = /^(OOM|LOADING|BUSY|MISCONF|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS)\b/;

/** Translates a rejected command for the engine. Anything but a refusal or a broken connection is a bug. */
export function redisFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error("redis failed", { cause: error });
  if (error.name === "ReplyError") {
    if (!REFUSALS.test(error.message)) return error;
    return new UnavailableError(`the queue refuses writes: ${error.message}`, { cause: error });
  }
  return new TransportError("the queue did not answer", { cause: error });
}

/**
 * Executes the pipeline and returns the answer of each command. Rejects if any of them failed, which the pipeline
 * itself reports only beside its answer.
 */
export async function runPipeline(pipeline: ChainableCommander): Promise<readonly unknown[]> {
  const replies = await pipeline.exec().catch((error: unknown) => Promise.reject(redisFailure(error)));
  return (replies ?? []).map(([error, answer]) => {
    if (error) throw redisFailure(error);
    return answer;
  });
}
