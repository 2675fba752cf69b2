import { Cluster, type Redis } from "ioredis";
import { type Clock, within } from "../../domain/clock.ts";
import { PartsAwayError } from "../../domain/jobs/report.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";

/** Less than a probe's own time limit, so that one late node does not lose the others' answers. */
const NODE_TIMEOUT_MS = 1_500;
const NAME = "redis";

/**
 * Rejects while Redis does not answer. In a cluster it checks each master: if one is away, its share of the tenants
 * stops while the others work.
 */
export async function probeRedis(connection: RedisConnection, clock: Clock): Promise<void> {
  if (connection instanceof Cluster) return probeCluster(connection, clock);
  await connection.ping().catch((error: unknown) => Promise.reject(redisFailure(error)));
}

async function probeCluster(cluster: Cluster, clock: Clock): Promise<void> {
  const nodes = new Map(cluster.nodes("all").map((node) => [`${node.options.host}:${node.options.port}`, node]));
  const masters = await listMasters([...nodes.values()], clock);
  const checked = await Promise.all(
    masters.map(async (place) => {
      const node = nodes.get(place);
      return node !== undefined && (await answers(node, clock)) ? [] : [`${NAME} ${place}`];
    }),
  );
  const away = checked.flat();
  if (away.length > 0) throw new PartsAwayError(away, "a master of the cluster does not answer");
  if (masters.length === 0) throw new Error("no node of the cluster names its masters");
}

async function answers(node: Redis, clock: Clock): Promise<boolean> {
  return (
    (await inTime(
      clock,
      node.ping().then(() => true),
    )) ?? false
  );
}

/** Returns `host:port` of each master that owns slots, according to the first node that answers. */
async function listMasters(nodes: readonly Redis[], clock: Clock): Promise<readonly string[]> {
  const asked = nodes.map(async (node) => {
    const reply = await inTime(clock, node.cluster("SLOTS") as Promise<unknown>);
    if (!Array.isArray(reply)) throw new Error("no answer");
    return reply.map((range) => masterOfRange(range, node.options.host ?? ""));
  });
  return [...new Set(await Promise.any(asked).catch(() => []))];
}

/**
 * Reads a range of slots: first, last, then its nodes as [host, port, …], the master first; an empty host is that of
 * the node that answers.
 */
function masterOfRange(range: unknown, teller: string): string {
  const parts: readonly unknown[] = Array.isArray(range) ? range : [];
  const master: readonly unknown[] = Array.isArray(parts[2]) ? parts[2] : [];
  const [host, port] = master;
  return `${typeof host === "string" && host !== "" ? host : teller}:${String(port)}`;
}

function inTime<T>(clock: Clock, asked: Promise<T>): Promise<T | null> {
  return within({ clock, ms: NODE_TIMEOUT_MS, late: () => null }, () => asked.catch(() => null));
}
