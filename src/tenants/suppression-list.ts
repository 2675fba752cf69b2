import { normaliseAddress } from "../domain/channels/email.ts";
import { jobTimeMs } from "../domain/ids.ts";
import type { SuppressionReason } from "../domain/jobs/job.ts";
import { FENCED, type FrontQueue, type Lease, type Observation, type ObserveResult } from "../domain/jobs/queue.ts";
import { type Done, done, type Full, type Missing, type PageOfTenant } from "../domain/store-result.ts";
import { maskedResult } from "../domain/tenants/erasure.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import {
  ERASED_NAME,
  type IndexedSuppression,
  isErasedName,
  readSuppressionName,
  type Suppression,
  type SuppressionIndex,
  type SuppressionRecord,
  suppressionName,
} from "../domain/tenants/suppressions.ts";
import type { TenantRef } from "../domain/tenants/tenant.ts";
import type { SuppressionRegistry } from "./registry.ts";

export interface SuppressionListPorts {
  readonly registry: SuppressionRegistry;
  readonly index: SuppressionIndex;
  readonly queue: Pick<FrontQueue, "job" | "observe">;
  /** Names erased recipients. */
  readonly recipients: Pick<RecipientIndex, "erasedName" | "erasedNamesKey">;
}

/** A job's recipient, as named by a link or a report; with a topic if it concerns that topic alone. */
interface LinkedRecipient {
  readonly jobId: string;
  readonly recipient: string;
  readonly topic?: string;
}

/**
 * The addresses that a tenant must not send to. The registry owns the list; the queue holds an index of it, which `pull`
 * checks. Addresses are compared by `normaliseAddress`, that is without regard to case. A recipient that was erased is on
 * both under a keyed hash, its erased name. Calls take names on the list (`suppressionName`): an address, or with a topic.
 *
 * S1. The registry is written first: anything the index loses can be restored from there.
 * S2. After each change, the index is rewritten until a second read of the registry gives the same result. So of several
 *     concurrent changes, the last one to write the index has also read its final content.
 * S3. The index has the key of a tenant's erased names before it has one of these names.
 * S4. A queue that never had a shard's index hands out no job of that shard before `fill` has resolved to true.
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
    const put = await this.ports.registry.putSuppression(tenant.tenantId, normaliseAddress(address), reason);
    if (put.kind === "done") await this.agree(tenant, toName(put.value));
    return put;
  }

  /**
   * The same, without a write to the registry if the entry exists: strangers can repeat this call. The index is corrected in
   * any case, because an earlier call may have died.
   */
  async ensure(
    tenant: TenantRef,
    { jobId, recipient: address, topic }: LinkedRecipient,
    reason: SuppressionReason,
  ): Promise<Done<unknown> | Missing<"tenant">> {
    const recipient = suppressionName(normaliseAddress(address), topic);
    for (const name of [recipient, this.ports.recipients.erasedName(tenant.tenantId, recipient)]) {
      if ((await this.ports.registry.suppressionReason(tenant.tenantId, name)) !== reason) continue;
      await this.agree(tenant, name);
      return done(null);
    }
    const put = await this.putLate(tenant, { jobId, recipient, reason });
    if (put.kind === "done") await this.agree(tenant, put.value);
    return put;
  }

  /** The same on behalf of the tenant, within its share. */
  async putOwn(
    tenant: TenantRef,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant"> | Full> {
    const put = await this.ports.registry.putOwnSuppression(tenant.tenantId, normaliseAddress(address), reason);
    if (put.kind === "done") await this.agree(tenant, toName(put.value));
    return put;
  }

  /** Removes the address itself from the list. Returns how many entries had it. */
  async erase(tenant: TenantRef, address: string, isAdded: boolean): Promise<Done<number> | Missing<"tenant">> {
    const recipient = normaliseAddress(address);
    const { registry, recipients } = this.ports;
    const erased = await registry.eraseSuppression(tenant.tenantId, recipient, isAdded);
    if (erased.kind === "missing") return erased;
    for (const name of new Set([recipient, ...erased.value.names])) {
      // The new name first: at no moment does the index have neither.
      await this.agree(tenant, recipients.erasedName(tenant.tenantId, name));
      await this.agree(tenant, name);
    }
    return done(erased.value.rows);
  }

  /**
   * Removes the name and returns whether it was on the list; `reason`: only if listed for this reason. The index is corrected
   * in any case, because an earlier call may have died.
   */
  async remove(
    tenant: TenantRef,
    name: string,
    reason?: SuppressionReason,
  ): Promise<Done<boolean> | Missing<"tenant">> {
    const recipient = normaliseAddress(name);
    const wasThere = await this.ports.registry.deleteSuppression(tenant.tenantId, recipient, reason);
    if (wasThere.kind === "done") {
      await this.agree(tenant, recipient);
      await this.agree(tenant, this.ports.recipients.erasedName(tenant.tenantId, recipient));
    }
    return wasThere;
  }

  page(...asked: Parameters<SuppressionRegistry["suppressions"]>): Promise<PageOfTenant<SuppressionRecord>> {
    return this.ports.registry.suppressions(...asked);
  }

  /**
   * Wraps the queue's `observe` for an observation that may suppress its recipient: the list is updated before the event is
   * recorded.
   */
  async observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult> {
    const { queue } = this.ports;
    const { suppress } = observation;
    if (suppress === null) return queue.observe(tenant, observation);
    // A report about a job that was never sent may be forged, and suppresses no recipient.
    const job = observation.known ?? (await queue.job(tenant, observation.jobId));
    if (job === null) return "unknown";
    const { jobId } = observation;
    const address = normaliseAddress(suppress.recipient);
    const stored = await this.putLate(tenant, { jobId, recipient: address, reason: suppress.reason });
    if (stored.kind === "missing") return "unknown";
    const recipient = stored.value;
    await this.giveKey(tenant, recipient);
    // The result's text quotes the address.
    const said = isErasedName(recipient) ? maskedResult(observation.result) : observation.result;
    const result = await queue.observe(tenant, { ...observation, result: said, suppress: { ...suppress, recipient } });
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
      state = await index.loadSuppressions(lease, [...this.keysFor(page), ...page], page.length === 0);
      after = page.at(-1) ?? null;
    }
    return state !== FENCED && state === "loaded";
  }

  /**
   * Puts the recipient of a message on the list, perhaps long after it was sent. Resolves to its name on the list, the erased
   * name if the recipient was erased since. The erasure mark is read after the write, and an erasure sets it before searching
   * the list, so the address does not stay in either order.
   */
  private async putLate(
    tenant: TenantRef,
    { jobId, recipient, reason }: LinkedRecipient & { readonly reason: SuppressionReason },
  ): Promise<Done<string> | Missing<"tenant">> {
    const { registry, index, recipients } = this.ports;
    const put = await registry.putSuppression(tenant.tenantId, recipient, reason);
    if (put.kind === "missing") return put;
    const { address: person } = readSuppressionName(recipient);
    const stored = toName(put.value);
    if (isErasedName(stored) || !(await index.wasErasedSince(tenant, person, jobTimeMs(jobId)))) return done(stored);
    const erased = await registry.eraseSuppression(tenant.tenantId, person, false);
    if (erased.kind === "missing") return erased;
    // The erasure itself may already have replaced the entry in the registry.
    await this.agree(tenant, recipient);
    return done(recipients.erasedName(tenant.tenantId, recipient));
  }

  private async giveKey(tenant: TenantRef, recipient: string): Promise<void> {
    if (!isErasedName(recipient)) return;
    await this.ports.index.putSuppression(tenant, ERASED_NAME, this.ports.recipients.erasedNamesKey(tenant.tenantId));
  }

  private keysFor(page: readonly Suppression[]): readonly IndexedSuppression[] {
    const tenants = new Set(page.filter(({ address }) => isErasedName(address)).map(({ tenantId }) => tenantId));
    const { recipients } = this.ports;
    return [...tenants].map((tenantId) => ({
      tenantId,
      address: ERASED_NAME,
      reason: recipients.erasedNamesKey(tenantId),
    }));
  }

  private async agree(tenant: TenantRef, recipient: string): Promise<void> {
    const { registry, index } = this.ports;
    let reason = await registry.suppressionReason(tenant.tenantId, recipient);
    for (let changes = 0; changes < CHANGES_MAX; changes += 1) {
      if (reason === null) await index.removeSuppression(tenant, recipient);
      else {
        await this.giveKey(tenant, recipient);
        await index.putSuppression(tenant, recipient, reason);
      }
      const written = reason;
      reason = await registry.suppressionReason(tenant.tenantId, recipient);
      if (reason === written) return;
    }
  }
}

function toName({ address, topic }: SuppressionRecord): string {
  return suppressionName(address, topic);
}

/** If a list changes more often than this during one call, other callers are correcting the index. */
const CHANGES_MAX = 10;
