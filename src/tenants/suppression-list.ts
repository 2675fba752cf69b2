import { normaliseAddress } from "../domain/email.ts";
import type { SuppressionReason } from "../domain/job.ts";
import { FENCED, type FrontQueue, type Lease, type Observation, type ObserveResult } from "../domain/queue.ts";
import type { Done, Missing, PageOfTenant } from "../domain/store-result.ts";
import type { Suppression, SuppressionIndex, SuppressionRecord } from "../domain/suppressions.ts";
import type { TenantRef } from "../domain/tenant.ts";
import type { SuppressionRegistry } from "./registry.ts";

export interface SuppressionListPorts {
  readonly registry: SuppressionRegistry;
  readonly index: SuppressionIndex;
  readonly queue: Pick<FrontQueue, "job" | "observe">;
}

/**
 * The addresses that a tenant must not send to. The registry owns the list; the queue holds an index of it, which `pull`
 * checks. Addresses are compared by `normaliseAddress`, that is without regard to case.
 *
 * S1. The registry is written first: anything the index loses can be restored from there.
 * S2. After each change, the index is rewritten until the registry, asked again, still says the same. So of several concurrent
 *     changes, the one that writes the index last also learns what it should hold.
 * S3. A queue that never had a shard's index hands out no job of that shard before `fill` has resolved to true.
 *
 * Every call is safe to repeat, and must be repeated if it rejects with `TransportError` or `UnavailableError`.
 */
export class SuppressionList {
  constructor(private readonly ports: SuppressionListPorts) {}

  async put(
    tenant: TenantRef,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant">> {
    const recipient = normaliseAddress(address);
    const record = await this.ports.registry.putSuppression(tenant.tenantId, recipient, reason);
    if (record.kind === "done") await this.agree(tenant, recipient);
    return record;
  }

  /** Whether the address was on the list. The index is corrected even if it was not: an earlier call may have died. */
  async remove(tenant: TenantRef, address: string): Promise<Done<boolean> | Missing<"tenant">> {
    const recipient = normaliseAddress(address);
    const wasThere = await this.ports.registry.deleteSuppression(tenant.tenantId, recipient);
    if (wasThere.kind === "done") await this.agree(tenant, recipient);
    return wasThere;
  }

  page(tenantId: string, cursor: string | null, limit: number): Promise<PageOfTenant<SuppressionRecord>> {
    return this.ports.registry.suppressions(tenantId, cursor, limit);
  }

  /**
   * Wraps the queue's `observe` for an observation that may suppress its recipient: the list is updated before the event is
   * recorded.
   */
  async observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult> {
    const { registry, queue } = this.ports;
    const { suppress } = observation;
    if (suppress === null) return queue.observe(tenant, observation);
    // A report about a job that was never sent, perhaps a forged one, suppresses nobody.
    const job = observation.known ?? (await queue.job(tenant, observation.jobId));
    if (job === null) return "unknown";
    const recipient = normaliseAddress(suppress.recipient);
    const stored = await registry.putSuppression(tenant.tenantId, recipient, suppress.reason);
    if (stored.kind === "missing") return "unknown";
    const result = await queue.observe(tenant, { ...observation, suppress: { ...suppress, recipient } });
    // `observe` leaves the index alone if it already has the event, but otherwise writes it whatever an operator has done
    // since.
    await this.agree(tenant, recipient);
    return result;
  }

  /**
   * Fills a shard's index in a queue that never had it, for example after losing it. False: the lease was lost or `signal`
   * aborted, and the index is incomplete.
   */
  async fill(lease: Lease, signal: AbortSignal): Promise<boolean> {
    const { registry, index } = this.ports;
    let state = await index.loadSuppressions(lease, [], false);
    let after: Suppression | null = null;
    while (state === "loading" && !signal.aborted) {
      const page: readonly Suppression[] = await registry.suppressionsOfShard(lease.shard, after);
      state = await index.loadSuppressions(lease, page, page.length === 0);
      after = page.at(-1) ?? null;
    }
    return state !== FENCED && state === "loaded";
  }

  private async agree(tenant: TenantRef, recipient: string): Promise<void> {
    const { registry, index } = this.ports;
    let reason = await registry.suppressionReason(tenant.tenantId, recipient);
    for (let changes = 0; changes < CHANGES_MAX; changes += 1) {
      if (reason === null) await index.removeSuppression(tenant, recipient);
      else await index.putSuppression(tenant, recipient, reason);
      const written = reason;
      reason = await registry.suppressionReason(tenant.tenantId, recipient);
      if (reason === written) return;
    }
  }
}

/** If a list changes more often than this during one call, other callers are correcting the index. */
const CHANGES_MAX = 10;
