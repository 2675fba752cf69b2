import { statfsSync } from "node:fs";
import { checkStart } from "../belonging/start-checks.ts";
import { StoreMarks } from "../belonging/store-marks.ts";
import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import type { ClickHouseAddress } from "../domain/jobs/event-store.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { RedisQueue } from "../engine/queue/redis-queue.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { type HoldEvents, removeStaging } from "../storage/backup/running-cut.ts";
import { removeExports } from "../storage/clickhouse/left-exports.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { Database, type OpenDatabase } from "../storage/postgres/database.ts";
import type { EmbeddedPostgres } from "../storage/postgres/pglite.ts";
import { Upkeep, type UpkeepOptions } from "../storage/upkeep.ts";
import {
  hasEmbeddedStore,
  joinDatabase,
  joinEventStore,
  type OpenEventStore,
  openDatabase,
  openEventStore,
  openRedis,
  usesEventStore,
} from "./stores.ts";

/** The stores of one process. */
export interface Stores {
  readonly queue: RedisQueue;
  readonly redis: RedisAddress;
  readonly database: OpenDatabase;
  /** Null if this process has none. */
  readonly eventStore: OpenEventStore | null;
}

/** The stores of a start's main process. */
export interface MainStores extends Stores {
  /** The stores in the data folder, for a backup; null if one of them is elsewhere, or this is another process. */
  readonly embedded: { readonly postgres: EmbeddedPostgres; readonly holdEvents: HoldEvents } | null;
  /** Where the embedded event store runs statements of analysts; null: nowhere. */
  readonly analysts: ClickHouseAddress | null;
  /** Where the other processes of the start find the event store; null: they have none. */
  readonly eventStoreAddress: ClickHouseAddress | null;
  serveTo(calls: Calls): void;
}

export interface StoresOptions {
  readonly channels: readonly AppChannel[];
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
}

/** Opens and checks all stores of a start, including those in the data folder. */
export async function openStores(
  { channels, config, telemetry }: StoresOptions,
  shutdown: Shutdown,
  onBroken: (reason: string) => void,
): Promise<MainStores> {
  const clock = systemClock;
  if (hasEmbeddedStore(config)) {
    const lock = FolderLock.acquire(config.home);
    shutdown.add("folder", "data folder", () => lock.release());
    await removeStaging(config.home);
    await removeExports(config.home);
  }
  // In parallel, because each takes a good part of a second. All are awaited, so those that opened can be closed if another
  // fails.
  const [redis, database, eventStore] = await Promise.allSettled([
    shutdown.keep("redis", openRedis({ config, clock, telemetry }, onBroken)),
    shutdown.keep("database", openDatabase(config, "leave")),
    usesEventStore(config)
      ? shutdown.keep("event store", openEventStore({ config, channels, clock, telemetry }, "leave"))
      : null,
  ]);
  if (redis.status === "rejected") throw redis.reason;
  if (database.status === "rejected") throw database.reason;
  if (eventStore.status === "rejected") throw eventStore.reason;

  const checks = await checkStart({
    config,
    clock,
    telemetry,
    redis: redis.value.address,
    db: database.value.db,
    eventStore: eventStore.value,
    onMismatch: onBroken,
  });
  shutdown.add("work", "start checks", () => checks.stop());
  const queue = await openQueue({ channels, config, telemetry }, shutdown, redis.value.address);
  // Our lock on the folder says that whoever held a lease in this Redis is dead.
  if (config.redis === null) await queue.forgetOwners(config.shards);
  const registry = new Database(database.value.db, clock, database.value.onSilence);
  const marked = { config, clock, telemetry, queue, database: registry, eventStore: eventStore.value, checked: checks };
  shutdown.start("history", "store marks", new StoreMarks({ ...marked, onForeign: onBroken }));
  const { postgres } = database.value;
  if (postgres !== null) {
    await startUpkeep({ db: postgres.db, clock, telemetry, freeBytes: () => measureFreeBytes(config.home) }, shutdown);
  }
  const events = eventStore.value?.embedded ?? null;
  const holdEvents = events?.hold ?? null;
  return {
    queue,
    redis: redis.value.address,
    database: database.value,
    eventStore: eventStore.value,
    embedded: config.redis === null && postgres !== null && holdEvents !== null ? { postgres, holdEvents } : null,
    analysts: events?.analysts ?? null,
    eventStoreAddress: eventStore.value?.address ?? null,
    serveTo: (calls) => database.value.serveTo(calls),
  };
}

function measureFreeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

async function startUpkeep(options: UpkeepOptions, shutdown: Shutdown): Promise<void> {
  const upkeep = new Upkeep(options);
  await upkeep.look();
  shutdown.start("history", "upkeep", upkeep);
}

/** Connects to the stores of a start whose main process has opened and checked them, and serves those in its folder. */
export async function joinStores(
  options: StoresOptions,
  shutdown: Shutdown,
  main: { readonly calls: Calls; readonly redis: RedisAddress; readonly eventStore: ClickHouseAddress | null },
): Promise<Stores> {
  const { channels, config } = options;
  const database = await shutdown.keep("database", joinDatabase(config, main.calls));
  const { eventStore: address } = main;
  const eventStore = address === null ? null : joinEventStore({ config, channels, clock: systemClock }, address);
  if (eventStore !== null) shutdown.add("stores", "event store", () => eventStore.close());
  return { queue: await openQueue(options, shutdown, main.redis), redis: main.redis, database, eventStore };
}

async function openQueue({ channels, config, telemetry }: StoresOptions, shutdown: Shutdown, address: RedisAddress) {
  const { redisReplicasAcked: replicasAcked } = config;
  const queue = new RedisQueue({
    channels,
    address,
    clock: systemClock,
    random: systemRandom,
    telemetry,
    replicasAcked,
  });
  shutdown.add("clients", "queue", () => queue.stop());
  await queue.start();
  return queue;
}
