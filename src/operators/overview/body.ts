import type { EventType } from "../../domain/jobs/event.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { MeasuredShard, TenantQueueDepth } from "../../domain/jobs/queue-depth.ts";
import type { ProcessStatus } from "../../domain/process-status.ts";
import { findAlarms, lagSeconds } from "./alarms.ts";
import { type Facts, firstMinuteMs, MINUTE_MS, MINUTES_SHOWN } from "./facts.ts";
import type { OUTCOMES, OverviewBody } from "./schema.ts";

const TENANTS_MAX = 50;
const EXPIRING_MAX = 50;

/** Builds the overview from these facts. Pure. */
export function overviewBody(facts: Facts): OverviewBody {
  return {
    at: isoTime(facts.nowMs),
    totals: computeTotals(facts),
    queue: describeQueue(facts),
    rates: computeRates(facts),
    shards: describeShards(facts),
    tenants: describeTenants(facts),
    processes: describeProcesses(facts),
    expiring: (facts.registry?.expiring ?? []).slice(0, EXPIRING_MAX).map(({ kind, tenantId, name, expiresAtMs }) => ({
      kind,
      tenant_id: tenantId,
      name,
      expires_at: isoTime(expiresAtMs),
    })),
    alarms: findAlarms(facts).map(({ tenantId, ...alarm }) => ({
      ...alarm,
      ...(tenantId !== undefined && { tenant_id: tenantId }),
    })),
  };
}

function computeTotals({ registry, processes, rates }: Facts): OverviewBody["totals"] {
  const today = (type: EventType) => (rates === null ? null : (rates.today.get(type) ?? 0));
  return {
    tenants: registry?.tenants ?? null,
    accepted_today: processes?.acceptedToday ?? null,
    sent_today: today("sent"),
    delivered_today: today("delivered"),
    bounced_today: today("bounced"),
    failed_today: today("failed"),
  };
}

function describeQueue({ queue, nowMs }: Facts): OverviewBody["queue"] {
  if (queue === null) {
    return {
      depth: null,
      incomplete: false,
      oldest_seconds: null,
      outbox_oldest_seconds: null,
      redis_memory_bytes: null,
      redis_memory_limit_bytes: null,
    };
  }
  const { depths, memory } = queue;
  return {
    depth: depths.reduce((sum, depth) => sum + countJobs(depth), 0),
    incomplete: depths.some(({ tenantQueues, measured }) => measured.length < tenantQueues),
    oldest_seconds: computeAge(findOldest(depths.flatMap(({ measured }) => measured)), nowMs),
    outbox_oldest_seconds: rounded(lagSeconds(queue, nowMs)),
    redis_memory_bytes: memory.usedBytes,
    redis_memory_limit_bytes: memory.maxBytes,
  };
}

type Outcome = (typeof OUTCOMES)[number];
/** Events in the event store; acceptance is not an event. */
const RECORDED = ["delivered", "bounced", "failed", "suppressed"] as const satisfies readonly Outcome[];

function computeRates({ channels, rates, processes, nowMs }: Facts): OverviewBody["rates"] {
  const fromMs = firstMinuteMs(nowMs);
  const recorded = (channel: ChannelName, type: EventType) =>
    counted(fromMs, channel, rates?.minutes.filter((one) => one.type === type).map(asCount) ?? []);
  return {
    from: isoTime(fromMs),
    interval_seconds: MINUTE_MS / 1_000,
    series: channels.flatMap((channel) => [
      ...(processes === null
        ? []
        : [{ channel, outcome: "accepted" as const, counts: counted(fromMs, channel, processes.accepted) }]),
      ...(rates === null ? [] : RECORDED.map((outcome) => ({ channel, outcome, counts: recorded(channel, outcome) }))),
    ]),
    sent: rates === null ? [] : channels.map((channel) => ({ channel, counts: recorded(channel, "sent") })),
  };
}

interface Counted {
  readonly minuteMs: number;
  readonly channel: ChannelName;
  readonly jobs: number;
}

function asCount({ minuteMs, channel, events }: { minuteMs: number; channel: ChannelName; events: number }): Counted {
  return { minuteMs, channel, jobs: events };
}

/** Counts per minute. */
function counted(fromMs: number, channel: ChannelName, counts: readonly Counted[]): number[] {
  const minutes = Array.from({ length: MINUTES_SHOWN }, () => 0);
  for (const { minuteMs, channel: of, jobs } of counts) {
    const at = (minuteMs - fromMs) / MINUTE_MS;
    if (of === channel && minutes[at] !== undefined) minutes[at] += jobs;
  }
  return minutes;
}

function describeShards({ queue, processes, nowMs }: Facts): OverviewBody["shards"] {
  const owners = new Map<number, string>();
  for (const { name, delivers } of processes?.statuses ?? []) for (const shard of delivers) owners.set(shard, name);
  return (queue?.depths ?? []).map((depth) => ({
    shard: depth.shard,
    depth: countJobs(depth),
    oldest_seconds: computeAge(findOldest(depth.measured), nowMs),
    process: owners.get(depth.shard) ?? null,
  }));
}

function describeTenants({ queue, nowMs }: Facts): OverviewBody["tenants"] {
  const all = (queue?.depths ?? []).flatMap(({ measured }) => measured);
  const longest = all.toSorted((a, b) => b.jobs - a.jobs).slice(0, TENANTS_MAX);
  const oldest = all.toSorted((a, b) => (a.oldestMs ?? nowMs) - (b.oldestMs ?? nowMs)).slice(0, TENANTS_MAX);
  return Array.from(new Set([...longest, ...oldest]), ({ tenantId, channel, jobs, oldestMs, waits }) => ({
    tenant_id: tenantId,
    channel,
    depth: jobs,
    oldest_seconds: computeAge(oldestMs, nowMs),
    waits,
  }));
}

function describeProcesses({ processes, queue, channels, nowMs }: Facts): OverviewBody["processes"] {
  const isKnown = ({ channel }: { channel: ChannelName }) => channels.includes(channel);
  return (processes?.statuses ?? []).map((status) => ({
    name: status.name,
    roles: [...status.roles],
    started_at: isoTime(status.startedAtMs),
    shards: new Set([...status.delivers, ...status.records]).size,
    loop_delay_ms: status.loopDelayMs,
    event_store_lag_seconds: computeLag(status, queue?.depths ?? null, nowMs),
    breakers: status.breakers.filter(isKnown).map(({ channel, relay, state, sinceMs, why, waitingJobs }) => ({
      channel,
      relay,
      state,
      since: isoTime(sinceMs),
      ...(why !== undefined && { why }),
      waiting_jobs: waitingJobs,
    })),
    paused: status.paused.filter(isKnown).map(({ tenantId, channel }) => ({ tenant_id: tenantId, channel })),
  }));
}

function computeLag({ records }: ProcessStatus, depths: readonly MeasuredShard[] | null, nowMs: number): number | null {
  if (records.length === 0 || depths === null) return null;
  return rounded(lagSeconds({ depths: depths.filter(({ shard }) => records.includes(shard)) }, nowMs));
}

/** Includes jobs that wait for another try. */
function countJobs({ measured, parked }: MeasuredShard): number {
  return measured.reduce((sum, { jobs }) => sum + jobs, parked);
}

function findOldest(measured: readonly TenantQueueDepth[]): number | null {
  const times = measured.flatMap(({ oldestMs }) => oldestMs ?? []);
  return times.length === 0 ? null : times.reduce((a, b) => Math.min(a, b));
}

/** Returns the age in seconds; 0 if there is no time. */
function computeAge(sinceMs: number | null, nowMs: number): number {
  return sinceMs === null ? 0 : rounded(Math.max(0, nowMs - sinceMs) / 1_000);
}

function rounded(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}

function isoTime(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
