import type { Config } from "../config/config.ts";
import type { QueuedChannel } from "../engine/queue/codec.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { QueueMetrics } from "../operators/metrics/queue-metrics.ts";
import { RegistryMetrics, type RegistryMetricsPorts } from "../operators/metrics/registry-metrics.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import type { OwnAnswers } from "./answers.ts";
import { BackupMetrics } from "./backup-metrics.ts";
import type { Place } from "./place.ts";

interface Measured {
  readonly channels: readonly QueuedChannel[];
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
  readonly place: Place;
  readonly queue: RedisQueue;
  readonly registry: RegistryMetricsPorts["registry"];
  readonly webhookDeliveries: RegistryMetricsPorts["webhookDeliveries"];
}

/** Updates time-dependent metrics before they are read. The main process measures queue and registry for the whole start. */
export function measured(
  { channels, config, telemetry, place, queue, registry, webhookDeliveries }: Measured,
  opened: { measure(): void },
): Pick<OwnAnswers, "metricsText" | "metricsParts"> {
  const names = channels.map(({ name }) => name);
  const ports = {
    queue,
    registry,
    webhookDeliveries,
    shards: config.shards,
    channels: names,
    clock: systemClock,
    telemetry,
  };
  const ofAll =
    place.kind === "child"
      ? []
      : [new QueueMetrics(ports), new RegistryMetrics(ports), new BackupMetrics(ports, config)];
  const after = async <T>(read: () => Promise<T>): Promise<T> => {
    opened.measure();
    await Promise.all(ofAll.map((metrics) => metrics.refresh()));
    return read();
  };
  return {
    metricsText: () => after(() => telemetry.metricsText()),
    metricsParts: () => after(() => telemetry.metricsParts()),
  };
}
