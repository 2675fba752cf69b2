import { CHANNELS } from "../app/channels.ts";
import { hasEmbeddedStore, openDatabase, openEventStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { runningStart } from "../tasks/control-socket.ts";
import { examine, type Finding, lookAt } from "../tasks/doctor.ts";
import { providerParts } from "./check.ts";
import { called } from "./command-line.ts";

const EXIT_FINDINGS = 1;

/**
 * `waybill doctor`: inspects a running system and prints a line for each problem, with its remedy, and one for each healthy
 * part. Exit code 1 if there is any problem. Makes no changes.
 */
export async function doctor(config: Config, { asJson }: { readonly asJson: boolean }): Promise<number> {
  const providers = Object.entries(providerParts(config)).map(([part, look]) =>
    lookAt(part, async () => [{ part, says: await look(), todo: null }]),
  );
  const system = hasEmbeddedStore(config) ? beside(config) : ofServers(config);
  const findings = (await Promise.all([system, ...providers])).flat();
  const open = findings.filter(({ todo }) => todo !== null);
  if (asJson) console.log(JSON.stringify({ healthy: open.length === 0, findings }, null, 2));
  else {
    for (const { part, says, todo } of findings) {
      console.log(todo === null ? `ok    ${part}: ${says}` : `FIX   ${part}: ${says}. To do: ${todo}`);
    }
    console.log(open.length === 0 ? "All is well." : `${open.length} of ${findings.length} need somebody.`);
  }
  return open.length === 0 ? 0 : EXIT_FINDINGS;
}

/** The process that holds the data folder has the engines, so it runs the checks itself. */
async function beside({ home }: Config): Promise<readonly Finding[]> {
  try {
    // Our own server answers.
    return (await runningStart(home).ask("doctor", null, () => undefined)) as unknown as readonly Finding[];
  } catch (error) {
    const says = `no server answers on ${home}${error instanceof Error ? ` (${error.message})` : ""}`;
    return [{ part: "server", says, todo: `start it: ${called()}` }];
  }
}

async function ofServers(config: Config): Promise<readonly Finding[]> {
  const telemetry = new ProcessTelemetry({ level: "silent", isTerminal: false });
  const { redis } = config;
  if (redis === null) return [];
  const database = await openDatabase(config, "leave").catch((error: unknown) => String(error));
  if (typeof database === "string") {
    return [{ part: "PostgreSQL", says: database, todo: "see that it runs, and that DATABASE_URL is right" }];
  }
  const eventStore = await openEventStore({ config, channels: CHANNELS, clock: systemClock, telemetry }, "leave");
  try {
    return await examine({ config, telemetry, redis, db: database.db, eventStore });
  } finally {
    await Promise.all([database.close(), eventStore.close()]);
  }
}
