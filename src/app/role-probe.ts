import type { Clock } from "../domain/clock.ts";
import { isOutage } from "../domain/errors.ts";
import { ownerlessShards, type ProcessStatuses } from "../domain/process-status.ts";
import type { LeaseRole } from "../domain/queue.ts";
import type { ReadinessProbe } from "../domain/report.ts";

/** Shards change hands in this time, also after their owner has died. */
const CHANGES_HANDS_MS = 20_000;

/** Whether living processes do a role's work for all shards, as they tell in Redis every few seconds. */
export class RoleProbe implements ReadinessProbe {
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

  /** None while Redis is away: then nothing is known of them, and Redis itself is reported. */
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
