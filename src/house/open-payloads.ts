import { join } from "node:path";
import type { Config } from "../config.ts";
import type { PayloadStore } from "../core/payload-store.ts";
import type { Telemetry } from "../core/telemetry.ts";
import { PayloadFiles } from "../embedded/payload-files.ts";
import { PayloadSweep, type PayloadSweepPorts } from "../intake/payload-sweep.ts";
import type { OpenRegistry } from "../registry/open-registry.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { PayloadRoom } from "./payload-room.ts";
import type { Shutdown } from "./shutdown.ts";
import { StoredPayloads } from "./stored-payloads.ts";

export interface Payloads {
  readonly store: PayloadStore;
  /** Fetches them for the channels. */
  readonly stored: StoredPayloads;
  /** Removes those whose job has ended, in processes that can read the ledger. */
  startSweep(ports: Pick<PayloadSweepPorts, "directory" | "journal" | "ledger">): void;
}

/** Where large payloads wait: beside the registry's rows, or in the data folder where the registry is embedded. */
export async function openPayloads(
  { config, telemetry }: { readonly config: Config; readonly telemetry: Telemetry },
  shutdown: Shutdown,
  registry: Pick<OpenRegistry, "payloads">,
): Promise<Payloads> {
  const store = config.databaseUrl === null ? await openFiles(config.home, shutdown) : registry.payloads;
  const common = { clock: systemClock, telemetry };
  return {
    store,
    stored: new StoredPayloads({ store, room: new PayloadRoom(systemClock), telemetry }),
    startSweep: (ports) => {
      if (!config.roles.includes("api")) return;
      const sweep = new PayloadSweep({ ...ports, ...common, payloads: store });
      sweep.start();
      shutdown.add("history", "payload sweep", () => sweep.stop());
    },
  };
}

function openFiles(home: string, shutdown: Shutdown): Promise<PayloadFiles> {
  return shutdown.keep("large payloads", PayloadFiles.open(join(home, "payloads")));
}
