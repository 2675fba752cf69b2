import { CHANNELS } from "../app/channels.ts";
import { hasEmbeddedStore, openEventStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import type { Json } from "../domain/texts/json.ts";
import { RedisQueue } from "../engine/queue/redis-queue.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { runningStart } from "../tasks/control-socket.ts";
import { type EraseRequest, eraseForCommand } from "../tasks/erase.ts";
import { processTelemetry, UsageError } from "./command-line.ts";
import { withRegistry } from "./with-registry.ts";

export interface EraseOptions {
  readonly tenant?: string | undefined;
  readonly recipient?: string | undefined;
  readonly suppress?: boolean | undefined;
}

const EXIT_INCOMPLETE = 1;

/**
 * `waybill erase --tenant T --recipient R`: prints the erased records as JSON. Exit code 1 if some are left and the command
 * must be repeated. Safe to repeat.
 */
export async function erase(config: () => Config, { tenant, recipient, suppress }: EraseOptions): Promise<number> {
  if (tenant === undefined || recipient === undefined) {
    throw new UsageError('"erase" needs --tenant and --recipient');
  }
  const erased = await run(config(), { tenantId: tenant, recipient, isSuppressed: suppress === true });
  console.log(JSON.stringify(erased, null, 2));
  const isComplete =
    typeof erased === "object" && erased !== null && "complete" in erased && erased["complete"] === true;
  return isComplete ? 0 : EXIT_INCOMPLETE;
}

/** The process that holds the data folder has the queue. */
function run(config: Config, request: EraseRequest): Promise<Json> {
  const { redis } = config;
  if (hasEmbeddedStore(config) || redis === null)
    return runningStart(config.home).ask("erase", { ...request }, () => undefined);
  return withRegistry(config, async (registry) => {
    const telemetry = processTelemetry(config);
    const eventStore = await openEventStore({ config, channels: CHANNELS, clock: systemClock, telemetry }, "leave");
    const common = { clock: systemClock, random: systemRandom, telemetry };
    const queue = new RedisQueue({ channels: CHANNELS, address: redis, ...common });
    try {
      await queue.start();
      return await eraseForCommand({ registry, queue, eventStore, sandbox: () => null }, request);
    } finally {
      await Promise.all([queue.stop(), eventStore.close()]);
    }
  });
}
