import { Cluster, type Redis } from "ioredis";
import { PartsAwayError } from "../core/report.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";

/** Within the time that a probe has, so that the others' answers are not lost with the one that is late. */
const NODE_TIMEOUT_MS = 1_500;
const NAME = "redis";

/**
 * Rejects while Redis does not answer. In a cluster each master is asked: with one away, its share of the tenants can
 * do nothing while the others work.
 */
export async function probeRedis(connection: RedisConnection): Promise<void> {
  if (connection instanceof Cluster) return probeCluster(connection);
  await connection.ping().catch((error: unknown) => Promise.reject(redisFailure(error)));
}

async function probeCluster(cluster: Cluster): Promise<void> {
  const nodes = new Map(cluster.nodes("all").map((node) => [`${node.options.host}:${node.options.port}`, node]));
  const masters = await mastersOf([...nodes.values()]);
  const checked = await Promise.all(
    masters.map(async (place) => {
      const node = nodes.get(place);
      return node !== undefined && (await answers(node)) ? [] : [`${NAME} ${place}`];
    }),
  );
  const away = checked.flat();
  if (away.length > 0) throw new PartsAwayError(away, "a master of the cluster does not answer");
  if (masters.length === 0) throw new Error("no node of the cluster says who its masters are");
}

async function answers(node: Redis): Promise<boolean> {
  return (await within(node.ping().then(() => true))) ?? false;
}

/** `host:port` of each master that owns slots, as the first node that answers knows them. */
async function mastersOf(nodes: readonly Redis[]): Promise<readonly string[]> {
  const asked = nodes.map(async (node) => {
    const reply = await within(node.cluster("SLOTS") as Promise<unknown>);
    if (!Array.isArray(reply)) throw new Error("no answer");
    return reply.map((range) => masterOfRange(range, node.options.host ?? ""));
  });
  return [...new Set(await Promise.any(asked).catch(() => []))];
}

/** A range of slots: first, last, then its nodes as [host, port, …], the master first; no host: that of who tells. */
function masterOfRange(range: unknown, teller: string): string {
  const [host, port] = Array.isArray(range) && Array.isArray(range[2]) ? range[2] : [];
  return `${typeof host === "string" && host !== "" ? host : teller}:${String(port)}`;
}

async function within<T>(asked: Promise<T>): Promise<T | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), NODE_TIMEOUT_MS);
  try {
    return await Promise.race([asked.catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}
