import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Expiring } from "../domain/channels/credentials.ts";
import type { EventRates } from "../domain/jobs/event-store.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import type { Readiness } from "../http/readiness.ts";
import { Overview } from "../operators/overview/overview.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { OpenRegistry } from "./open-registry.ts";

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
    expiring,
  }: {
    readonly queue: RedisQueue;
    readonly eventStore: { readonly reader: EventRates };
    readonly registry: Pick<OpenRegistry, "registry" | "webhookDeliveries">;
    readonly readiness: Pick<Readiness, "look">;
    /** Certificates and keys of the platform that end by themselves. */
    expiring(): readonly Expiring[];
  },
): Overview {
  return new Overview({
    queue,
    rates: eventStore.reader,
    registry,
    webhooks: webhookDeliveries,
    platformExpiring: expiring,
    readiness,
    shards: config.shards,
    channels: channels.map(({ name }) => name),
    clock: systemClock,
    telemetry,
  });
}
