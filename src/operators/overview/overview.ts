import { type Clock, sleep } from "../../domain/clock.ts";
import type { Expiring } from "../../domain/credentials.ts";
import type { EventRates } from "../../domain/event-store.ts";
import type { ChannelName } from "../../domain/job.ts";
import { oneAtATime } from "../../domain/one-at-a-time.ts";
import type { ProcessStatuses } from "../../domain/process-status.ts";
import type { Leases } from "../../domain/queue.ts";
import type { RedisMemory, ShardDepth } from "../../domain/queue-depth.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Readiness } from "../../http/readiness.ts";
import { overviewBody } from "./body.ts";
import { firstMinuteMs, type QueueFacts } from "./facts.ts";
import type { OverviewBody } from "./schema.ts";

/** However many ask, an overview is made this often at most. */
const FRESH_MS = 2_000;
/** Longest that an overview waits for a store; then it says what the others know. */
const WAIT_MS = 1_500;
const RATES_FRESH_MS = 5_000;
const REGISTRY_FRESH_MS = 30_000;
const DAY_MS = 86_400_000;
const EXPIRING_DAYS = 30;

export interface OverviewPorts {
  readonly queue: Pick<Leases, "leases"> & {
    depth(shard: number): Promise<ShardDepth>;
    memory(): Promise<RedisMemory>;
  };
  readonly statuses: Pick<ProcessStatuses, "statuses">;
  readonly rates: EventRates;
  readonly registry: { tenantCount(): Promise<number>; expiring(before: Date): Promise<readonly Expiring[]> };
  /** The platform's own certificates. */
  platformExpiring(): readonly Expiring[];
  readonly readiness: Pick<Readiness, "look">;
  readonly shards: number;
  readonly channels: readonly ChannelName[];
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log">;
}

/**
 * How the whole service is, from what its stores say.
 *
 * Invariants:
 * V1. A store is asked by one reading at a time, however many ask for the overview and however long the store takes.
 * V2. An overview takes at most two seconds. What its store does not say in time is null or empty, and an alarm tells why.
 */
export class Overview {
  /** At most two seconds old. Never rejects. */
  readonly now: () => Promise<OverviewBody>;
  private latest: { readonly body: OverviewBody; readonly atMs: number } | null = null;

  constructor(ports: OverviewPorts) {
    const parts = partsOf(ports);
    const look = oneAtATime(async () => {
      const [queue, processes, rates, registry, readiness] = await Promise.all([
        parts.queue(),
        parts.processes(),
        parts.rates(),
        parts.registry(),
        parts.readiness(),
      ]);
      const { clock, channels } = ports;
      const nowMs = clock.nowMs();
      const body = overviewBody({ nowMs, channels, queue, processes, rates, registry, readiness });
      this.latest = { body, atMs: clock.monotonicMs() };
      return body;
    });
    this.now = async () => {
      const { latest } = this;
      return latest !== null && ports.clock.monotonicMs() - latest.atMs < FRESH_MS ? latest.body : look();
    };
  }
}

function partsOf(ports: OverviewPorts) {
  const { statuses, rates, registry, readiness, clock, platformExpiring } = ports;
  const part = <T>(name: string, freshMs: number, read: () => Promise<T>) =>
    bounded({ name, freshMs, read, clock, telemetry: ports.telemetry });
  return {
    queue: part("queue", 0, () => queueFacts(ports)),
    processes: part("processes", 0, () => statuses.statuses()),
    rates: part("event store", RATES_FRESH_MS, async () => {
      const nowMs = clock.nowMs();
      const minutes = await rates.minutes(firstMinuteMs(nowMs));
      return { minutes, today: await rates.sumsSince(Math.floor(nowMs / DAY_MS) * DAY_MS) };
    }),
    registry: part("registry", REGISTRY_FRESH_MS, async () => {
      const before = new Date(clock.nowMs() + EXPIRING_DAYS * DAY_MS);
      const expiring = [...(await registry.expiring(before)), ...platformExpiring()];
      return {
        tenants: await registry.tenantCount(),
        expiring: expiring
          .filter(({ expiresAtMs }) => expiresAtMs <= before.getTime())
          .sort((a, b) => a.expiresAtMs - b.expiresAtMs),
      };
    }),
    readiness: part("readiness", 0, () => readiness.look()),
  };
}

async function queueFacts({ queue, shards }: OverviewPorts): Promise<QueueFacts> {
  const depths: ShardDepth[] = [];
  // One after the other: it must not fill the connection that requests use.
  for (let shard = 0; shard < shards; shard += 1) depths.push(await queue.depth(shard));
  const unowned = async (role: "dispatcher" | "recorder") =>
    (await queue.leases(role, shards)).filter((lease) => lease === null).length;
  return {
    depths,
    memory: await queue.memory(),
    unowned: { dispatcher: await unowned("dispatcher"), recorder: await unowned("recorder") },
  };
}

/** Reads at most once at a time, and no more often than it has to. Null: it failed, or has not answered in time. */
function bounded<T>({
  name,
  freshMs,
  read,
  clock,
  telemetry,
}: {
  readonly name: string;
  readonly freshMs: number;
  readonly read: () => Promise<T>;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log">;
}): () => Promise<T | null> {
  let known: { readonly value: T; readonly atMs: number } | null = null;
  const reading = oneAtATime(async () => {
    try {
      const value = await read();
      known = { value, atMs: clock.monotonicMs() };
      return value;
    } catch (error) {
      telemetry.log("debug", "the overview could not read a part", { part: name, error: String(error) });
      return null;
    }
  });
  return async () => {
    if (known !== null && clock.monotonicMs() - known.atMs < freshMs) return known.value;
    const answered = new AbortController();
    const late = sleep(clock, WAIT_MS, answered.signal).then(() => null);
    const value = await Promise.race([reading(), late]);
    answered.abort();
    return value;
  };
}
