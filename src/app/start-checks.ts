import type { Config } from "../config/config.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import { ConfigurationError, isOutage } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { type RedisFacts, RedisInspection } from "../engine/queue/redis-inspection.ts";
import type { AnyDb } from "../storage/database.ts";
import { requireSchema } from "../storage/migrate.ts";
import { noteMasterKey, readIdentity } from "../storage/registry-identity.ts";
import { masterKeyId } from "../storage/vault.ts";

/** How long a start waits for Redis's first answer. */
const REDIS_START_MS = 10_000;
/** How often a start that could not reach the event store tries again. */
const ASK_AGAIN_MS = 5_000;

/** Fields of the queue's metadata that name the stores it belongs to. */
export const BELONGINGS = ["registry", "event_store", "master_key"] as const;
export type Belonging = (typeof BELONGINGS)[number];

export interface StartChecks {
  readonly config: Config;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly redis: RedisAddress;
  readonly db: AnyDb;
  /** Null if this process has no event store. */
  readonly eventStore: { identity(): Promise<string> } | null;
  /** Ends the process: the event store was unavailable at the start and turned out to be another one. */
  onMismatch(reason: string): void;
}

/**
 * Refuses to start on stores that cannot keep the promises or that do not belong together. Rejects with `ConfigurationError`,
 * one line per problem, which says what to change. Returns how to stop the checks that are still pending.
 *
 * In the embedded default one process owns the queue, so another registry or event store beside it was put there on purpose:
 * the queue then belongs to that one. A shared Redis belongs to the stores of the first process that used it, until `waybill
 * adopt` changes that.
 */
export async function checkStart(options: StartChecks): Promise<{ stop(): void }> {
  const { config, telemetry, redis, db, eventStore } = options;
  const { later } = await requireSchema(db);
  if (later > 0) telemetry.log("warn", "the registry has the schema of a later version", { migrations: later });
  const masterKey = await checkMasterKey(config, db);
  const inspection = await RedisInspection.open({ ...options, address: redis, withinMs: REDIS_START_MS });
  try {
    if (config.redis !== null) await requireFitness(inspection, config, telemetry);
    // Other processes may be using a shared queue; an embedded one is ours alone.
    await inspection.meta.openFormat(config.redis === null ? "migrate" : "refuse");
    const queue = new QueueBelongings(inspection, config, telemetry);
    await queue.requireMasterKey(masterKey);
    await queue.require("registry", (await readIdentity(db)).registry);
  } finally {
    await inspection.close();
  }
  const stopped = new AbortController();
  if (eventStore !== null && !(await eventStoreFits(options, eventStore))) {
    telemetry.log("warn", "clickhouse does not answer: whether it is this queue's event store is asked again", {});
    void askAgain(options, eventStore, stopped.signal);
  }
  return { stop: () => stopped.abort() };
}

/** The ids of the given keys. The first key seals. */
export function masterKeyIds({ masterKeys }: Pick<Config, "masterKeys">): readonly string[] {
  return masterKeys.map((key) => masterKeyId(key));
}

/**
 * Requires the recorded key, which sealed the latest secrets. From then on the first given key is recorded, so the record
 * follows a rotation. Returns the id of that first key.
 */
async function checkMasterKey(config: Config, db: AnyDb): Promise<string> {
  const given = masterKeyIds(config);
  const { masterKey: noted } = await readIdentity(db);
  const [first = ""] = given;
  if (noted !== null && !given.includes(noted)) throw foreignKey(noted, "The registry");
  if (noted !== first) await noteMasterKey(db, first);
  return first;
}

export function foreignKey(noted: string, what: string): ConfigurationError {
  return new ConfigurationError(
    `${what} was written with master key ${noted}, which is not in MASTER_KEY: set MASTER_KEY to it, the same in every ` +
      "process (a generated one is in WAYBILL_HOME/master-key of the process that wrote first).",
  );
}

async function requireFitness(inspection: RedisInspection, { redis }: Config, telemetry: Telemetry): Promise<void> {
  const { problems, warnings } = fitnessOf(await inspection.servers(), redis?.kind === "cluster");
  if (problems.length > 0) throw new ConfigurationError(...problems);
  for (const warning of warnings) telemetry.log("warn", warning);
}

/** What the queue in Redis belongs to. */
class QueueBelongings {
  constructor(
    private readonly inspection: RedisInspection,
    private readonly config: Config,
    private readonly telemetry: Telemetry,
  ) {}

  async require(what: Belonging, id: string): Promise<void> {
    const owned = await this.inspection.meta.claim(what, id);
    if (owned === id) return;
    if (this.config.redis !== null) throw foreignStore(what, this.config);
    await this.inspection.meta.set(what, id);
    this.telemetry.log("warn", "the queue belongs to another store from now on", { store: what, was: owned, is: id });
  }

  async requireMasterKey(first: string): Promise<void> {
    const noted = await this.inspection.meta.claim("master_key", first);
    if (noted === first) return;
    if (!masterKeyIds(this.config).includes(noted)) throw foreignKey(noted, "The queue in Redis");
    await this.inspection.meta.set("master_key", first);
  }
}

/** The error for a store that is not the one the shared queue belongs to. */
export function foreignStore(what: Belonging, config: Config): ConfigurationError {
  const [name, setting, url] =
    what === "registry"
      ? (["registry", "DATABASE_URL", config.databaseUrl] as const)
      : (["event store", "CLICKHOUSE_URL", config.clickhouseUrl] as const);
  const here = url === null ? `the private ${name} in WAYBILL_HOME` : `the ${name} at ${setting}`;
  return new ConfigurationError(
    `The queue at REDIS_URL belongs to another ${name} than ${here}: set ${setting} as its other processes have it ` +
      "(after a move on purpose: stop them all and run `waybill adopt`).",
  );
}

/** False if it does not answer. Rejects with `ConfigurationError` if it is another event store or has another schema. */
async function eventStoreFits(options: StartChecks, eventStore: { identity(): Promise<string> }): Promise<boolean> {
  let id: string;
  try {
    id = await eventStore.identity();
  } catch (error) {
    if (isOutage(error)) return false;
    throw error;
  }
  const inspection = await RedisInspection.open({ ...options, address: options.redis, withinMs: REDIS_START_MS });
  try {
    await new QueueBelongings(inspection, options.config, options.telemetry).require("event_store", id);
    return true;
  } finally {
    await inspection.close();
  }
}

async function askAgain(
  options: StartChecks,
  eventStore: { identity(): Promise<string> },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(options.clock, ASK_AGAIN_MS, signal);
    if (signal.aborted) return;
    try {
      if (await eventStoreFits(options, eventStore)) return;
    } catch (error) {
      if (error instanceof ConfigurationError) return options.onMismatch(error.message);
      options.telemetry.log("debug", "the event store was not asked", { error: String(error) });
    }
  }
}

/** The result of inspecting the Redis servers, in sentences. */
interface Fitness {
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
  if (server.hasAppendOnlyFile !== false && server.loadsTornFile === true) {
    warnings.push(
      `${at} has "aof-load-truncated yes": after a crash in the middle of a write it can start with half of that write, or forget what followed; set "aof-load-truncated no".`,
    );
  }
  if (asCluster && server.replicas === 0) {
    warnings.push(`${at} has no replica: while it is down, its share of the tenants cannot send.`);
  }
  return warnings;
}
