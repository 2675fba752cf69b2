import { CHANNELS } from "../app/channels.ts";
import { listSealedColumns } from "../app/of-channels.ts";
import { hasEmbeddedStore, openDatabase, openEventStore, openRedis, usesEventStore } from "../app/stores.ts";
import { masterKeyIds } from "../belonging/start-checks.ts";
import { jobs, MARK_OF } from "../belonging/store-belongings.ts";
import type { Config } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { RedisInspection } from "../engine/queue/redis-inspection.ts";
import { moveEventClocks } from "../engine/queue/restored-queue.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { Database } from "../storage/postgres/database.ts";
import { requireSchema } from "../storage/postgres/migrate.ts";
import { giveToQueue, noteMasterKey, type RegistryIdentity, readIdentity } from "../storage/registry-identity.ts";
import { requireShards } from "../storage/require-shards.ts";
import { requireMasterKeys } from "../storage/sealed-column.ts";
import { Vault } from "../storage/vault.ts";
import { processTelemetry } from "./command-line.ts";

/**
 * `waybill adopt`, to be run after a move, or after a store was lost: assigns the queue in Redis, the registry, the event store
 * and the master key of this configuration to each other, whatever they belonged to before.
 */
export async function adopt(config: Config): Promise<number> {
  const lock = hasEmbeddedStore(config) ? FolderLock.acquire(config.home) : null;
  try {
    for (const line of await adoptStores(config, processTelemetry(config))) console.log(line);
  } finally {
    lock?.release();
  }
  return 0;
}

const WITHIN_MS = 10_000;

/**
 * Records in all stores that they belong together, with this master key. No data is moved from the former stores. Refuses a
 * master key that does not open the stored credentials. Returns one line per store with its change.
 *
 * The queue gets a new id, so a process that still runs on the former stores ends, and one that starts on them is refused. The
 * queue is written last: until then the stores do not match, and the command must be repeated.
 */
async function adoptStores(config: Config, telemetry: Telemetry): Promise<readonly string[]> {
  if (!usesEventStore(config)) {
    throw new ConfigurationError(
      "CLICKHOUSE_URL is unset and ROLES has no event store: run it with those of the recorder.",
    );
  }
  const redis = await openRedis({ config, clock: systemClock, telemetry }, () => undefined);
  try {
    const { address } = redis;
    const inspection = await RedisInspection.open({ address, clock: systemClock, telemetry, withinMs: WITHIN_MS });
    try {
      return await adoptQueue(config, telemetry, inspection);
    } finally {
      await inspection.close();
    }
  } finally {
    await redis.close();
  }
}

async function adoptQueue(
  config: Config,
  telemetry: Telemetry,
  inspection: RedisInspection,
): Promise<readonly string[]> {
  const before = await inspection.meta.read();
  const queue = crypto.randomUUID();
  const registry = await adoptRegistry(config, queue, Number(before["mark"] ?? 0));
  const older = config.redis === null ? "migrate" : "refuse";
  await inspection.meta.openFormat(registry.former.queue === null ? older : "unmarked");
  const { lastEventId, ...eventStore } = await adoptEventStore({ config, telemetry }, queue, registry.mark);
  const { mark } = eventStore;
  const { shards } = config;
  await moveEventClocks(inspection, { shards, lastEventId, nowMs: systemClock.nowMs() });
  const [keyId = ""] = masterKeyIds(config);
  const belongings = { queue, registry: registry.id, event_store: eventStore.id, master_key: keyId };
  const marks = { [MARK_OF.registry]: String(registry.mark), [MARK_OF.event_store]: String(mark) };
  await inspection.meta.setAll({ ...belongings, mark: String(mark), ...marks });
  return [
    ...Object.entries(belongings).map(([what, id]) => formatLine(what, id, before[what])),
    ...lostLines(registry.former, before["queue"]),
  ];
}

function formatLine(what: string, id: string, was: string | undefined): string {
  const name = what.replace("_", " ");
  return was === id ? `${name}: ${id}, as before` : `${name}: ${id} from now on (was: ${was ?? "none"})`;
}

/** Describes the jobs of a queue that no longer exists. */
function lostLines({ queue, queued }: RegistryIdentity, here: string | undefined): readonly string[] {
  if (queue === null || queue === here || queued === null || queued.jobs === 0) return [];
  const held = `at least ${jobs(queued.jobs)} that had not ended at ${queued.at.toISOString()}`;
  return [`left behind in the former queue ${queue}: ${held}`];
}

/** Closes the registry before the queue is written: an embedded one has its changes on disk only then. */
async function adoptRegistry(config: Config, queue: string, queueMark: number) {
  const database = await openDatabase(config, "leave");
  try {
    const { db } = database;
    await requireSchema(db);
    await requireShards(db, config.shards);
    const vault = new Vault(config.masterKeys, systemRandom);
    await requireMasterKeys(new Database(db, systemClock), vault, listSealedColumns(CHANNELS));
    const former = await readIdentity(db);
    const mark = Math.max(queueMark, former.mark);
    const [keyId = ""] = masterKeyIds(config);
    await noteMasterKey(db, keyId);
    await giveToQueue(db, queue, mark);
    return { id: former.registry, mark, former };
  } finally {
    await database.close();
  }
}

async function adoptEventStore(
  { config, telemetry }: { readonly config: Config; readonly telemetry: Telemetry },
  queue: string,
  least: number,
) {
  const eventStore = await openEventStore({ config, channels: CHANNELS, clock: systemClock, telemetry }, "leave");
  try {
    const id = await eventStore.identity();
    const mark = Math.max(least, (await eventStore.belonging.read()).mark);
    await eventStore.belonging.giveToQueue(queue, mark);
    return { id, mark, lastEventId: await eventStore.belonging.lastEvent() };
  } finally {
    await eventStore.close();
  }
}
