import type { RedisFacts } from "../engine/queue/redis-inspection.ts";

/** The result of inspecting the Redis servers, in sentences. */
export interface Fitness {
  /** Why they must not hold a queue. */
  readonly problems: readonly string[];
  /** What breaks a promise only in combination with something else, such as a power cut. */
  readonly warnings: readonly string[];
  /** What was found, in a few words. */
  readonly summary: string;
}

const VERSION_MIN = 7;

/** Whether these servers can keep the promise of a 202. `asCluster`: REDIS_URL names several. */
export function fitnessOf(servers: readonly RedisFacts[], asCluster: boolean): Fitness {
  const versions = new Set(servers.map(({ version }) => version ?? "of an unknown version"));
  const kind = asCluster ? `cluster of ${servers.length} masters` : "one server";
  return {
    problems: servers.flatMap((server) => problemsOf(server, asCluster)),
    warnings: servers.flatMap((server) => warningsOf(server, asCluster)),
    summary: `${kind}, Redis ${[...versions].join(", ")}`,
  };
}

function problemsOf(server: RedisFacts, asCluster: boolean): readonly string[] {
  const at = `Redis at ${server.place}`;
  const problems: string[] = [];
  if (server.version !== null && Number.parseInt(server.version, 10) < VERSION_MIN) {
    problems.push(`${at} is version ${server.version}: it should be ${VERSION_MIN} or later.`);
  }
  if (server.isCluster && !asCluster) {
    problems.push(`${at} is a node of a Redis Cluster: REDIS_URL should name several of its nodes, with commas.`);
  }
  if (server.isReplica) problems.push(`${at} is a replica: REDIS_URL should name its master.`);
  if (server.hasAppendOnlyFile === false) {
    problems.push(
      `${at} keeps no append-only file, and would forget accepted jobs: set "appendonly yes" in its configuration.`,
    );
  }
  if (server.evictionPolicy !== null && server.evictionPolicy !== "noeviction") {
    problems.push(
      `${at} evicts keys when its memory is full (maxmemory-policy ${server.evictionPolicy}): set "maxmemory-policy noeviction".`,
    );
  }
  return problems;
}

function warningsOf(server: RedisFacts, asCluster: boolean): readonly string[] {
  const at = `Redis at ${server.place}`;
  const warnings: string[] = [];
  if (server.hasAppendOnlyFile === null) {
    warnings.push(`${at} does not say whether it keeps an append-only file: it should have "appendonly yes".`);
  }
  if (server.hasAppendOnlyFile !== false && server.appendFsync === null) {
    warnings.push(`${at} does not say when it syncs its append-only file: it should have "appendfsync always".`);
  }
  if (server.hasAppendOnlyFile !== false && server.appendFsync !== null && server.appendFsync !== "always") {
    warnings.push(
      `${at} has "appendfsync ${server.appendFsync}": a power cut there loses what was accepted last; set "appendfsync always".`,
    );
  }
  if (asCluster && server.replicas === 0) {
    warnings.push(`${at} has no replica: while it is down, its share of the tenants cannot send.`);
  }
  return warnings;
}
