import type { Clock } from "../../domain/clock.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import {
  type MeasuredQueue,
  type QueueFacts,
  queueFacts,
  type ShardDepth,
  type TenantQueueDepth,
  type WaitingQueue,
} from "../../domain/jobs/queue-depth.ts";
import { QUEUE_WAITS } from "../../domain/process-status.ts";
import type { Series, SeriesGauges, Telemetry } from "../../domain/telemetry.ts";
import { refreshSeries } from "./refresh-series.ts";

/** However many scrapers ask, the queue is measured this often at most. */
const FRESH_MS = 5_000;
/** Longest that a scrape waits for Redis. */
const WAIT_MS = 2_000;
const TENANTS_MAX = 50;

export interface QueueMetricsPorts {
  readonly queue: MeasuredQueue;
  readonly shards: number;
  readonly channels: readonly ChannelName[];
  readonly clock: Clock;
  readonly telemetry: SeriesGauges & Pick<Telemetry, "log">;
}

interface Sum {
  readonly jobs: number;
  readonly oldestMs: number | null;
}

const NOTHING: Sum = { jobs: 0, oldestMs: null };

/**
 * Measures the whole queue when somebody reads the metrics: every process that is asked shows the same, so readers take the
 * highest value over the processes. While Redis is away the series are gone, rather than old.
 */
export class QueueMetrics {
  /** Resolves when the gauges are fresh, or after `WAIT_MS`. Never rejects. */
  readonly refresh: () => Promise<unknown>;

  constructor(private readonly ports: QueueMetricsPorts) {
    const measurement = { series: ALL, failure: "the queue could not be measured", freshMs: FRESH_MS, waitMs: WAIT_MS };
    this.refresh = refreshSeries(() => this.measure(), measurement, ports);
  }

  private async measure(): Promise<void> {
    const { queue, shards, telemetry } = this.ports;
    const { depths, unowned, memory } = await queueFacts(queue, shards);
    this.show(depths);
    telemetry.series(
      "shards_unowned",
      Object.entries(unowned).map(([role, count]) => [{ role }, count]),
    );
    const { usedBytes, maxBytes } = memory;
    telemetry.series("redis_memory_used_bytes", [[{}, usedBytes]]);
    telemetry.series("redis_memory_max_bytes", maxBytes === null ? [] : [[{}, maxBytes]]);
  }

  private show(depths: QueueFacts["depths"]): void {
    const { clock, telemetry, channels } = this.ports;
    const nowMs = clock.nowMs();
    const toAge = (sinceMs: number | null) => (sinceMs === null ? 0 : Math.max(0, nowMs - sinceMs) / 1000);
    const jobs: Series[] = [];
    const ages: Series[] = [];
    const tenants: WaitingQueue[] = [];
    for (const { shard, measured } of depths) {
      tenants.push(...measured);
      for (const channel of channels) {
        const labels = { shard: String(shard), channel };
        const ofChannel = measured.filter((each) => each.channel === channel);
        for (const waits of QUEUE_WAITS) {
          const sum = ofChannel.filter((each) => each.waits === waits).reduce(added, NOTHING);
          jobs.push([{ ...labels, waits }, sum.jobs]);
          ages.push([{ ...labels, waits }, toAge(sum.oldestMs)]);
        }
      }
    }
    telemetry.series("queue_jobs", jobs);
    telemetry.series("queue_oldest_age_seconds", ages);
    const perShard = (value: (depth: ShardDepth) => number): Series[] =>
      depths.map((depth) => [{ shard: String(depth.shard) }, value(depth)]);
    telemetry.series(
      "queue_parked_jobs",
      perShard(({ parked }) => parked),
    );
    telemetry.series(
      "queue_tenant_queues",
      perShard(({ tenantQueues }) => tenantQueues),
    );
    telemetry.series(
      "event_store_lag_seconds",
      perShard(({ oldestEventMs }) => toAge(oldestEventMs)),
    );
    const top = tenants.sort((a, b) => b.jobs - a.jobs).slice(0, TENANTS_MAX);
    const toLabels = ({ tenantId: tenant, channel, waits }: WaitingQueue) => ({ tenant, channel, waits });
    telemetry.series(
      "tenant_queue_jobs",
      top.map((each) => [toLabels(each), each.jobs]),
    );
    telemetry.series(
      "tenant_queue_oldest_age_seconds",
      top.map((each) => [toLabels(each), toAge(each.oldestMs)]),
    );
  }
}

function added({ jobs, oldestMs }: Sum, each: TenantQueueDepth): Sum {
  const oldest = Math.min(oldestMs ?? Number.POSITIVE_INFINITY, each.oldestMs ?? Number.POSITIVE_INFINITY);
  return { jobs: jobs + each.jobs, oldestMs: Number.isFinite(oldest) ? oldest : null };
}

const ALL = [
  "queue_jobs",
  "queue_oldest_age_seconds",
  "queue_parked_jobs",
  "queue_tenant_queues",
  "event_store_lag_seconds",
  "tenant_queue_jobs",
  "tenant_queue_oldest_age_seconds",
  "shards_unowned",
  "redis_memory_used_bytes",
  "redis_memory_max_bytes",
] as const;
