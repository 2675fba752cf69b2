import type { Clock } from "../domain/clock.ts";
import { isOutage } from "../domain/errors.ts";
import type { LeaseRole } from "../domain/jobs/queue.ts";
import type { ReadinessProbe } from "../domain/jobs/report.ts";
import { oneAtATime } from "../domain/one-at-a-time.ts";
import { ownerlessShards, type ProcessStatuses } from "../domain/process-status.ts";
import type { AwayParts } from "../http/away-parts.ts";
import type { ReadinessOptions } from "../http/readiness.ts";
import { openFilesProbe } from "../runtime/open-files.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { OpenRegistry } from "./open-registry.ts";
import type { Stores } from "./open-stores.ts";
import type { Place } from "./place.ts";

/** Shards change hands in this time, also after their owner has died. */
const CHANGES_HANDS_MS = 20_000;

/**
 * The checks of `/ready`: the parts that this process cannot work without (the event store only if it has one), and the work
 * that some process has to do, here or elsewhere. The main process checks the latter for the whole start.
 */
export function readinessParts({
  place,
  stores: { queue, eventStore },
  registry,
  away,
  shards,
}: {
  readonly place: Place;
  readonly stores: Pick<Stores, "queue" | "eventStore">;
  readonly registry: Pick<OpenRegistry, "probe">;
  readonly away: AwayParts;
  readonly shards: number;
}): Pick<ReadinessOptions, "needed" | "noticed" | "beside"> {
  const roles = place.kind === "child" ? [] : (["dispatcher", "recorder"] as const);
  // The roles are asked for at the same moment: one reading serves both.
  const statuses = { statuses: oneAtATime(() => queue.statuses.statuses()) };
  return {
    needed: [queue.probe, registry.probe, ...(eventStore === null ? [] : [eventStore.probe]), openFilesProbe],
    noticed: roles.map((role) => new RoleProbe(role, { statuses, shards, clock: systemClock })),
    beside: () => away.list(),
  };
}

/** Whether living processes do a role's work for all shards, as they tell in Redis every few seconds. */
class RoleProbe implements ReadinessProbe {
  readonly name: string;
  private ownerlessFromMs: number | null = null;

  constructor(
    private readonly role: LeaseRole,
    private readonly ports: {
      readonly statuses: Pick<ProcessStatuses, "statuses">;
      readonly shards: number;
      readonly clock: Clock;
    },
  ) {
    this.name = role;
  }

  async check(): Promise<void> {
    const count = await this.ownerless();
    if (count === 0) {
      this.ownerlessFromMs = null;
      return;
    }
    const nowMs = this.ports.clock.monotonicMs();
    this.ownerlessFromMs ??= nowMs;
    if (nowMs - this.ownerlessFromMs < CHANGES_HANDS_MS) return;
    throw new Error(`no running process with this role has ${count === 1 ? "1 shard" : `${count} shards`}`);
  }

  /** None while Redis is away: then they are unknown, and Redis itself is reported. */
  private async ownerless(): Promise<number> {
    const { statuses, shards } = this.ports;
    try {
      return ownerlessShards((await statuses.statuses()).statuses, this.role, shards).length;
    } catch (error) {
      if (isOutage(error)) return 0;
      throw error;
    }
  }
}
