import { sealedColumnsOf } from "../app/app-channel.ts";
import { CHANNELS } from "../app/channels.ts";
import { type Belonging, masterKeyIds } from "../app/start-checks.ts";
import { hasEmbeddedStore, openDatabase, openEventStore, openRedis, usesEventStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { RedisInspection } from "../engine/queue/redis-inspection.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { Database } from "../storage/database.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { requireSchema } from "../storage/migrate.ts";
import { noteMasterKey, readIdentity } from "../storage/registry-identity.ts";
import { requireMasterKeys } from "../storage/sealed-column.ts";
import { Vault } from "../storage/vault.ts";
import { processTelemetry } from "./command-line.ts";

/**
 * `waybill adopt`, to be run after a move: from now on the queue in Redis belongs to the registry, the event store and the
 * master key of this configuration.
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
 * Records in the queue that it belongs to the stores and the master key of this configuration. Nothing is moved: data in the
 * former stores stays there. Refuses a master key that does not open the stored credentials. Returns one line per store that
 * says what changed.
 */
async function adoptStores(config: Config, telemetry: Telemetry): Promise<readonly string[]> {
  const [keyId = ""] = masterKeyIds(config);
  const database = await openDatabase(config, "leave");
  let registry: string;
  try {
    await requireSchema(database.db);
    const vault = new Vault(config.masterKeys, systemRandom);
    await requireMasterKeys(new Database(database.db, systemClock), vault, sealedColumnsOf(CHANNELS));
    await noteMasterKey(database.db, keyId);
    registry = (await readIdentity(database.db)).registry;
  } finally {
    await database.close();
  }
  if (!usesEventStore(config)) {
    throw new ConfigurationError(
      "CLICKHOUSE_URL is unset and ROLES has no event store: run it with those of the recorder.",
    );
  }
  const eventStore = await openEventStore({ config, channels: CHANNELS, clock: systemClock }, "leave");
  let storeId: string;
  try {
    storeId = await eventStore.identity();
  } finally {
    await eventStore.close();
  }
  return await note(config, telemetry, { registry, event_store: storeId, master_key: keyId });
}

async function note(
  config: Config,
  telemetry: Telemetry,
  belongings: Readonly<Record<Belonging, string>>,
): Promise<readonly string[]> {
  const redis = await openRedis({ config, clock: systemClock, telemetry }, () => undefined);
  try {
    const { address } = redis;
    const inspection = await RedisInspection.open({ address, clock: systemClock, telemetry, withinMs: WITHIN_MS });
    try {
      const before = await inspection.meta.read();
      const lines: string[] = [];
      for (const [what, id] of Object.entries(belongings)) {
        await inspection.meta.set(what, id);
        const name = what.replace("_", " ");
        if (before[what] === id) lines.push(`${name}: ${id}, as before`);
        else lines.push(`${name}: ${id} from now on (was: ${before[what] ?? "none"})`);
      }
      return lines;
    } finally {
      await inspection.close();
    }
  } finally {
    await redis.close();
  }
}
