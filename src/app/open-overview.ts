import type { Config } from "../config/config.ts";
import type { EventRates } from "../domain/jobs/event-store.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import type { Readiness } from "../http/readiness.ts";
import { Overview } from "../operators/overview/overview.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { AppChannel } from "./app-channel.ts";
import type { OpenRegistry } from "./open-registry.ts";
import type { OpenWallet } from "./wallet.ts";

interface OverviewOptions {
  readonly channels: readonly AppChannel[];
  readonly config: Pick<Config, "shards">;
  readonly telemetry: Telemetry;
}

/** Creates the operators' overview of the whole service, without starting it. */
export function openOverview(
  { channels, config, telemetry }: OverviewOptions,
  {
    queue,
    eventStore,
    registry: { registry, webhookDeliveries },
    readiness,
    wallet,
  }: {
    readonly queue: RedisQueue;
    readonly eventStore: { readonly reader: EventRates };
    readonly registry: Pick<OpenRegistry, "registry" | "webhookDeliveries">;
    readonly readiness: Pick<Readiness, "look">;
    readonly wallet: Pick<OpenWallet, "platformExpiring">;
  },
): Overview {
  return new Overview({
    queue,
    rates: eventStore.reader,
    registry,
    webhooks: webhookDeliveries,
    platformExpiring: () => wallet.platformExpiring(),
    readiness,
    shards: config.shards,
    channels: channels.map(({ name }) => name),
    clock: systemClock,
    telemetry,
  });
}
