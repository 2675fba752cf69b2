import type { Config } from "../config/config.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import { ConfigurationError, isOutage } from "../domain/errors.ts";
import { eventTimeMs, firstEventIdAt } from "../domain/jobs/event.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { type RedisFacts, RedisInspection } from "../engine/queue/redis-inspection.ts";
import { readLastEventId } from "../engine/queue/restored-queue.ts";
import type { EventStoreBelonging } from "../events/event-store-belonging.ts";
import type { AnyDb } from "../storage/postgres/database.ts";
import { requireSchema } from "../storage/postgres/migrate.ts";
import { claimForQueue, noteMasterKey, readIdentity } from "../storage/registry-identity.ts";
import { requireShards } from "../storage/require-shards.ts";
import { masterKeyId } from "../storage/vault.ts";
import {
  type Beside,
  eventStoreSays,
  MARK_OF,
  olderQueue,
  problemBetween,
  registrySays,
  type StoreSays,
} from "./store-belongings.ts";

/** How long a start waits for Redis's first answer. */
const REDIS_START_MS = 10_000;
/**
 * The most that a Redis with `appendfsync everysec` may lose by a power cut, for which a start has warned: such a queue is not
 * an older copy.
 */
const LOST_BY_POWER_CUT_MS = 2_000;
/** How often a start that could not reach the event store tries again. */
const ASK_AGAIN_MS = 5_000;

/** The parts of an event store that tell whose it is. */
export interface CheckedEventStore {
  identity(): Promise<string>;
  readonly belonging: EventStoreBelonging;
}

export interface StartChecks {
  readonly config: Config;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly redis: RedisAddress;
  readonly db: AnyDb;
  /** Null if this process has no event store. */
  readonly eventStore: CheckedEventStore | null;
  /** Ends the process: the event store was unavailable at the start and turned out to be another one. */
  onMismatch(reason: string): void;
}

/** The result of the checks. */
export interface Checked {
  /** The queue's id. */
  readonly queue: string;
  /** The last mark of it that the registry had when it was opened, and so has on disk. */
  readonly registryMark: number;
  /** Whether the event store has answered, and belongs to the queue. */
  isEventStoreOurs(): boolean;
  /** Stops the checks that are still pending. */
  stop(): void;
}

/**
 * Refuses to start on stores that cannot keep the promises, that do not belong together or are not of the same time. Rejects with
 * `ConfigurationError`, one line per problem, which says what to change. The stores of the first process that used them belong
 * together, until `waybill adopt` changes that.
 */
export async function checkStart(options: StartChecks): Promise<Checked> {
  const { config, telemetry, redis, db, eventStore } = options;
  const { later } = await requireSchema(db);
  if (later > 0) telemetry.log("warn", "the registry has the schema of a later version", { migrations: later });
  await requireShards(db, config.shards);
  const masterKey = await checkMasterKey(config, db);
  const inspection = await RedisInspection.open({ ...options, address: redis, withinMs: REDIS_START_MS });
  let registry: Pick<Checked, "queue" | "registryMark">;
  try {
    if (config.redis !== null) await requireFitness(inspection, config, telemetry);
    registry = await new QueueBelongings(inspection, config).requireRegistry(db, masterKey);
  } finally {
    await inspection.close();
  }
  const stopped = new AbortController();
  let isOurs = false;
  if (eventStore !== null) {
    const checks = { ...options, queue: registry.queue, eventStore };
    isOurs = await eventStoreFits(checks);
    if (isOurs) await tellBrokenParts(checks);
    if (!isOurs) {
      telemetry.log("warn", "clickhouse does not answer: whether it is this queue's event store is asked again", {});
      void askAgain(checks, stopped.signal).then(async (fits) => {
        isOurs = fits;
        if (fits) await tellBrokenParts(checks);
      });
    }
  }
  return { ...registry, isEventStoreOurs: () => isOurs, stop: () => stopped.abort() };
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
  const { problems, warnings } = checkFitness(await inspection.servers(), redis?.kind === "cluster");
  if (problems.length > 0) throw new ConfigurationError(...problems);
  for (const warning of warnings) telemetry.log("warn", warning);
}

/** Checks that the queue in Redis and the other stores belong together. A store that does not match is not written to. */
class QueueBelongings {
  constructor(
    private readonly inspection: RedisInspection,
    private readonly config: Config,
  ) {}

  async requireRegistry(db: AnyDb, masterKey: string): Promise<Pick<Checked, "queue" | "registryMark">> {
    const { meta } = this.inspection;
    const read = async () => registrySays(await readIdentity(db));
    // First: what a process went on to write into a queue that was emptied looks like another format.
    const { id, mark } = await this.requireTogether("registry", read);
    // Other processes may be using a shared queue; an embedded one is ours alone.
    await meta.openFormat(this.config.redis === null ? "migrate" : "refuse");
    await this.requireMasterKey(masterKey);
    const queue = await meta.name(crypto.randomUUID());
    // The registry decides between two queues that begin at the same moment.
    await claimForQueue(db, queue);
    await this.requireTogether("registry", read);
    await meta.claim("registry", id);
    await this.requireTogether("registry", read);
    return { queue, registryMark: mark };
  }

  async requireEventStore({ identity, belonging }: CheckedEventStore, queue: string, nowMs: number): Promise<void> {
    const read = async () => eventStoreSays(await identity(), await belonging.read());
    const { id, queue: knownQueue } = await this.requireTogether("event_store", read);
    if (knownQueue !== null) await this.requireEventsOfQueue(belonging, nowMs);
    // Processes that record also write to it.
    if (this.config.roles.includes("recorder")) await belonging.claimForQueue(queue);
    await this.inspection.meta.claim("event_store", id);
    await this.requireTogether("event_store", read);
  }

  /** Others may raise the marks meanwhile. So the queue says what it noted of the store before, and its own mark after the store is read. */
  private async requireTogether(what: Beside, read: () => Promise<StoreSays>): Promise<StoreSays> {
    const { [MARK_OF[what]]: noted = "0" } = await this.inspection.meta.read();
    const store = await read();
    const meta = { ...(await this.inspection.meta.read()), [MARK_OF[what]]: noted };
    const problem = problemBetween(what, this.config, { meta, store });
    if (problem !== null) throw problem;
    return store;
  }

  /**
   * The queue gives out an event's id before the event is stored. Events of the future were dated by a clock that was wrong, and those
   * of a queue without any were written by somebody else.
   */
  private async requireEventsOfQueue(belonging: EventStoreBelonging, nowMs: number): Promise<void> {
    const known = await readLastEventId(this.inspection, this.config.shards);
    const later = known === 0 ? null : await belonging.lastEventIn(known, firstEventIdAt(nowMs));
    if (later === null || eventTimeMs(later) - eventTimeMs(known) <= LOST_BY_POWER_CUT_MS) return;
    // Another process may have given it out meanwhile.
    if (later > (await readLastEventId(this.inspection, this.config.shards))) {
      throw olderQueue("event_store", this.config);
    }
  }

  private async requireMasterKey(first: string): Promise<void> {
    const noted = await this.inspection.meta.claim("master_key", first);
    if (noted === first) return;
    if (!masterKeyIds(this.config).includes(noted)) throw foreignKey(noted, "The queue in Redis");
    await this.inspection.meta.set("master_key", first);
  }
}

interface EventStoreCheck extends StartChecks {
  readonly queue: string;
  readonly eventStore: CheckedEventStore;
}

/** False if it does not answer. Rejects with `ConfigurationError` if it is another event store or has another schema. */
async function eventStoreFits({ queue, eventStore, ...options }: EventStoreCheck): Promise<boolean> {
  const inspection = await RedisInspection.open({ ...options, address: options.redis, withinMs: REDIS_START_MS });
  try {
    const belongings = new QueueBelongings(inspection, options.config);
    await belongings.requireEventStore(eventStore, queue, options.clock.nowMs());
    return true;
  } catch (error) {
    if (isOutage(error)) return false;
    throw error;
  } finally {
    await inspection.close();
  }
}

/** The engine goes on without them, so only this tells. */
async function tellBrokenParts({ eventStore, telemetry }: EventStoreCheck): Promise<void> {
  const broken = await eventStore.belonging.brokenParts().catch((error: unknown) => {
    telemetry.log("debug", "damaged files of the event store were not looked for", { error: String(error) });
    return [];
  });
  for (const { table, parts, folder } of broken) {
    telemetry.log("error", "files of the event store are damaged: rows are missing (docs/runbook.md)", {
      table,
      parts,
      folder,
    });
  }
}

async function askAgain(checks: EventStoreCheck, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    await sleep(checks.clock, ASK_AGAIN_MS, signal);
    if (signal.aborted) return false;
    try {
      if (await eventStoreFits(checks)) return true;
    } catch (error) {
      if (error instanceof ConfigurationError) {
        checks.onMismatch(error.message);
        return false;
      }
      checks.telemetry.log("debug", "the event store was not asked", { error: String(error) });
    }
  }
}

/** The result of inspecting the Redis servers, in sentences. */
interface Fitness {
  /** Why they must not hold a queue. */
  readonly problems: readonly string[];
  /** Problems that break a promise only together with another event, such as a power cut. */
  readonly warnings: readonly string[];
  /** The result in a few words. */
  readonly summary: string;
}

const VERSION_MIN = 7;

/** Whether these servers can keep the promise of a 202. `asCluster`: REDIS_URL names several. */
export function checkFitness(servers: readonly RedisFacts[], asCluster: boolean): Fitness {
  const software = new Set(servers.map((server) => server.software ?? "Redis of an unknown version"));
  const kind = asCluster ? `cluster of ${servers.length} masters` : "one server";
  return {
    problems: servers.flatMap((server) => findProblems(server, asCluster)),
    warnings: servers.flatMap((server) => findWarnings(server, asCluster)),
    summary: `${kind}, ${[...software].join(", ")}`,
  };
}

function findProblems(server: RedisFacts, asCluster: boolean): readonly string[] {
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

function findWarnings(server: RedisFacts, asCluster: boolean): readonly string[] {
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
