import { CHANNELS } from "../app/channels.ts";
import { type OpenRegistry, openRegistry } from "../app/open-registry.ts";
import { openDatabase } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { readSenderDomain } from "../config/mail-names.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { Vault } from "../storage/vault.ts";
import { processTelemetry } from "./command-line.ts";

/** Opens the registry for a command when no running process of ours holds it. */
export async function withRegistry<T>(config: Config, act: (registry: OpenRegistry) => Promise<T>): Promise<T> {
  const database = await openDatabase(config, "leave");
  try {
    const opened = await openRegistry({
      channels: CHANNELS,
      db: database.db,
      shards: config.shards,
      senderDomain: readSenderDomain(config),
      vault: new Vault(config.masterKeys, systemRandom),
      clock: systemClock,
      random: systemRandom,
      // Serving processes notice the change in the database within a second.
      feed: { announce: () => {}, onChange: () => () => {} },
      telemetry: processTelemetry(config),
    });
    return await act(opened);
  } finally {
    await database.close();
  }
}
