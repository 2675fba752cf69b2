import type { Expiring } from "../../domain/channels/credentials.ts";
import type { Clock } from "../../domain/clock.ts";
import type { EventRates } from "../../domain/jobs/event-store.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { type MeasuredQueue, queueFacts } from "../../domain/jobs/queue-depth.ts";
import { oneAtATime } from "../../domain/one-at-a-time.ts";
import { recently } from "../../domain/recently.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { REPUTATION_LEVELS, type Reputation } from "../../domain/tenants/reputation.ts";
import type { Readiness } from "../../http/readiness.ts";
import { overviewBody } from "./body.ts";
import { type DisabledWebhookFact, firstMinuteMs, type GovernedFact } from "./facts.ts";
import type { OverviewBody } from "./schema.ts";

/** The shortest time between two overviews, however many are requested. */
const FRESH_MS = 2_000;
/** The longest that an overview waits for a store before it is built without it. */
const WAIT_MS = 1_500;
const RATES_FRESH_MS = 5_000;
const REGISTRY_FRESH_MS = 30_000;
const DAY_MS = 86_400_000;
const EXPIRING_DAYS = 30;

export interface OverviewPorts {
  readonly queue: MeasuredQueue;
  readonly rates: EventRates;
  readonly registry: {
    tenantCount(): Promise<number>;
    expiring(before: Date): Promise<readonly Expiring[]>;
    reputations(): Promise<ReadonlyMap<string, Reputation>>;
  };
  readonly webhooks: { disabled(): Promise<readonly DisabledWebhookFact[]> };
  /** The platform's own certificates. */
  platformExpiring(): readonly Expiring[];
  readonly readiness: Pick<Readiness, "look">;
  readonly shards: number;
  readonly channels: readonly ChannelName[];
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log">;
}

/**
 * The state of the whole service, read from its stores.
 *
 * Invariants:
 * V1. Each store is read by one call at a time, however many overviews are requested and however long the store takes.
 * V2. An overview takes at most two seconds. Values that a store does not return in time are null or empty, and an alarm
 *     says why.
 */
export class Overview {
  /** At most two seconds old. Never rejects. */
  readonly now: () => Promise<OverviewBody>;
  private latest: { readonly body: OverviewBody; readonly atMs: number } | null = null;

  constructor(ports: OverviewPorts) {
    const parts = createParts(ports);
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

function createParts(ports: OverviewPorts) {
  const { queue, shards, rates, registry, webhooks, readiness, clock, platformExpiring } = ports;
  const part = <T>(name: string, freshMs: number, read: () => Promise<T>) => bounded(ports, { name, freshMs, read });
  return {
    queue: part("queue", 0, () => queueFacts(queue, shards)),
    processes: part("processes", 0, () => queue.statuses.statuses()),
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
        disabledWebhooks: await webhooks.disabled(),
        governed: listGoverned(await registry.reputations()),
        expiring: expiring
          .filter(({ expiresAtMs }) => expiresAtMs <= before.getTime())
          .sort((a, b) => a.expiresAtMs - b.expiresAtMs),
      };
    }),
    readiness: part("readiness", 0, () => readiness.look()),
  };
}

/** Returns the tenants on hold first. */
function listGoverned(reputations: ReadonlyMap<string, Reputation>): readonly GovernedFact[] {
  return Array.from(reputations)
    .flatMap(([tenantId, { level, sinceMs }]) => (level === "good" ? [] : [{ tenantId, level, sinceMs: sinceMs ?? 0 }]))
    .sort((a, b) => REPUTATION_LEVELS.indexOf(b.level) - REPUTATION_LEVELS.indexOf(a.level));
}

/** Wraps the read of a part. It resolves to null if the part fails, or does not answer in time. */
function bounded<T>(
  { clock, telemetry }: Pick<OverviewPorts, "clock" | "telemetry">,
  part: { readonly name: string; readonly freshMs: number; read(): Promise<T> },
): () => Promise<T | null> {
  const { name, freshMs } = part;
  const read = async () => {
    try {
      return await part.read();
    } catch (error) {
      telemetry.log("debug", "the overview could not read a part", { part: name, error: String(error) });
      return null;
    }
  };
  return recently(read, { freshMs, waitMs: WAIT_MS, clock });
}
