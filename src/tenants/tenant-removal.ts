import type { ChannelName } from "../domain/jobs/job.ts";
import type { RuntimePorts } from "../domain/runtime-ports.ts";
import { Sweep } from "../domain/sweep.ts";
import { logFailure } from "../domain/telemetry.ts";
import type { TenantHistory, TenantQueueRemoval } from "../domain/tenants/erasure.ts";
import type { Purging } from "./endpoints/steering-endpoints.ts";
import type { LeavingTenant, TenantRegistry } from "./registry.ts";

export interface TenantRemovalPorts extends RuntimePorts {
  readonly registry: Pick<TenantRegistry, "leavingTenants" | "removeOfTenant" | "tenantRemoved">;
  /** The channels' data outside the registry. */
  readonly beside: Pick<TenantRegistry, "removeOfTenant">;
  readonly queue: TenantQueueRemoval & Purging;
  readonly history: TenantHistory;
  readonly channels: readonly ChannelName[];
}

const ROUND_MS = 5_000;
const TENANTS_MAX = 20;
/** Pieces of one tenant in the registry that one round removes, so that other tenants get their turn. */
const PIECES_MAX = 50;
/** After this, no process has the tenant in memory: none accepts jobs for it or reports about its messages. */
const SETTLED_MS = 60_000;

/**
 * Removes the data of deleted tenants.
 *
 * R1. The queue comes first: its jobs fail by themselves, because their tenant is gone, and refund their charges. Then
 *     follow the channels' data beside the registry (rows of devices name no tenant and are found by its passes), the
 *     registry, the history, and last the mark of the removal. These steps wait until its last event is in the history,
 *     which is removed once.
 * R2. Every step checks what is left and is safe to repeat: the process may die at any point, and several may work at the
 *     same time.
 */
export class TenantRemovals extends Sweep {
  constructor(private readonly ports: TenantRemovalPorts) {
    super(ports, { everyMs: ROUND_MS, failure: "deleted tenants could not be read" });
  }

  protected override async work(): Promise<void> {
    for (const tenant of await this.ports.registry.leavingTenants(TENANTS_MAX)) {
      if (this.isStopping) return;
      const fields = { tenant_id: tenant.tenantId };
      await this.remove(tenant).catch((error: unknown) =>
        logFailure(this.ports.telemetry, "a deleted tenant could not be removed yet", error, fields),
      );
    }
  }

  private async remove(leaving: LeavingTenant): Promise<void> {
    const { registry, beside, queue, history, channels, clock, telemetry } = this.ports;
    const { tenantId, shard, deletedAtMs } = leaving;
    const tenant = { tenantId, shard };
    if ((await queue.unfinishedJobs(tenant)) > 0) {
      // Jobs that wait for a retry end now.
      await queue.hastenParked(tenant, channels);
      return;
    }
    if (clock.nowMs() - deletedAtMs < SETTLED_MS) return;
    // This waits however long the recorder is unavailable.
    if (await queue.hasUnrecorded(tenant)) return;
    for (const its of [beside, registry]) {
      for (let pieces = 0; !(await its.removeOfTenant(tenantId)); pieces += 1) if (pieces >= PIECES_MAX) return;
    }
    if (!(await history.removeHistory(tenantId))) return;
    await queue.removeTenant(tenant);
    await registry.tenantRemoved(tenantId);
    telemetry.log("info", "a deleted tenant is removed", { tenant_id: tenantId });
  }
}
