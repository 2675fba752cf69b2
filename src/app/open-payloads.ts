import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channel.ts";
import type { PayloadStore } from "../domain/payload-store.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { PayloadSweep, type PayloadSweepPorts } from "../engine/dispatch/payload-sweep.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { PayloadFiles } from "../storage/payload-files.ts";
import type { OpenRegistry } from "./open-registry.ts";
import { PayloadRoom } from "./payload-room.ts";
import type { Shutdown } from "./shutdown.ts";
import { StoredPayloads } from "./stored-payloads.ts";

export interface Payloads {
  readonly store: PayloadStore;
  /** Wraps a channel to fetch its jobs' large payloads. */
  over(channel: Channel): Channel;
}

interface PayloadsPorts extends Pick<PayloadSweepPorts, "queue" | "eventStore"> {
  readonly registry: Pick<OpenRegistry, "payloads" | "directory">;
  /** Whether this process sweeps payloads; a process that can read the event store does. */
  readonly sweeps: boolean;
  /** Whether another process has opened the files. */
  readonly joins: boolean;
}

/** Opens the store of large payloads: rows beside the registry's, or files in the data folder if the registry is embedded. */
export async function openPayloads(
  { config, telemetry }: { readonly config: Config; readonly telemetry: Telemetry },
  shutdown: Shutdown,
  { registry, sweeps, joins, ...ports }: PayloadsPorts,
): Promise<Payloads> {
  const store = config.databaseUrl === null ? await openFiles(config.home, shutdown, joins) : registry.payloads;
  const { directory } = registry;
  if (sweeps) {
    const sweep = new PayloadSweep({ ...ports, payloads: store, directory, clock: systemClock, telemetry });
    sweep.start();
    shutdown.add("history", "payload sweep", () => sweep.stop());
  }
  const stored = new StoredPayloads({ store, room: new PayloadRoom(systemClock), telemetry });
  return { store, over: (channel) => stored.over(channel) };
}

function openFiles(home: string, shutdown: Shutdown, joins: boolean): Promise<PayloadFiles> {
  const folder = join(home, "payloads");
  return shutdown.keep("large payloads", joins ? PayloadFiles.join(folder) : PayloadFiles.open(folder));
}
