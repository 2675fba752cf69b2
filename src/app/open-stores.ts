import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { RedisJournal } from "../engine/queue/redis-journal.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import type { OpenDatabase } from "../storage/database.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import type { Shutdown } from "./shutdown.ts";
import { checkStart } from "./start-checks.ts";
import {
  hasEmbeddedStore,
  joinDatabase,
  joinLedger,
  type OpenLedger,
  openDatabase,
  openLedger,
  openRedis,
  usesLedger,
} from "./stores.ts";

/** The stores as a process has them. */
export interface Stores {
  readonly journal: RedisJournal;
  readonly redis: RedisAddress;
  readonly database: OpenDatabase;
  /** Null: this process has none. */
  readonly ledger: OpenLedger | null;
}

export interface StoresOptions {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
}

/** Opens and checks the stores of a start, those too that are in the data folder. */
export async function openStores(
  { config, telemetry }: StoresOptions,
  shutdown: Shutdown,
  onBroken: (reason: string) => void,
): Promise<Stores & { serveTo(calls: Calls): void }> {
  const clock = systemClock;
  if (hasEmbeddedStore(config)) {
    const lock = FolderLock.acquire(config.home);
    shutdown.add("folder", "data folder", () => lock.release());
  }
  // Side by side: each takes a good part of a second. All are waited for, so that those that opened are closed again.
  const [redis, database, ledger] = await Promise.allSettled([
    shutdown.keep("redis", openRedis({ config, clock, telemetry }, onBroken)),
    shutdown.keep("database", openDatabase(config, "leave")),
    usesLedger(config) ? shutdown.keep("ledger", openLedger(config, clock, "leave")) : null,
  ]);
  if (redis.status === "rejected") throw redis.reason;
  if (database.status === "rejected") throw database.reason;
  if (ledger.status === "rejected") throw ledger.reason;

  const checks = await checkStart({
    config,
    clock,
    telemetry,
    redis: redis.value.address,
    db: database.value.db,
    eventStore: ledger.value,
    onMismatch: onBroken,
  });
  shutdown.add("work", "start checks", () => checks.stop());
  const journal = await openJournal({ config, telemetry }, shutdown, redis.value.address);
  // Our lock on the folder says that whoever held a lease in this Redis is dead.
  if (config.redis === null) await journal.forgetOwners(config.shards);
  return {
    journal,
    redis: redis.value.address,
    database: database.value,
    ledger: ledger.value,
    serveTo(calls) {
      database.value.serveTo(calls);
      ledger.value?.serveTo(calls);
    },
  };
}

/** The stores of a start whose main process has opened and checked them, and serves those in its folder. */
export async function joinStores(
  options: StoresOptions,
  shutdown: Shutdown,
  main: { readonly calls: Calls; readonly name: string; readonly redis: RedisAddress },
): Promise<Stores> {
  const { config } = options;
  const database = await shutdown.keep("database", joinDatabase(config, main.calls));
  const hasLedger = config.clickhouseUrl === null || usesLedger(config);
  const ledger = hasLedger ? joinLedger(config, systemClock, main) : null;
  if (ledger !== null) shutdown.add("stores", "ledger", () => ledger.close());
  return { journal: await openJournal(options, shutdown, main.redis), redis: main.redis, database, ledger };
}

async function openJournal({ config, telemetry }: StoresOptions, shutdown: Shutdown, address: RedisAddress) {
  const { redisReplicasAcked: replicasAcked } = config;
  const journal = new RedisJournal({ address, clock: systemClock, random: systemRandom, telemetry, replicasAcked });
  shutdown.add("clients", "journal", () => journal.stop());
  await journal.start();
  return journal;
}
