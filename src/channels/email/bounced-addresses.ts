import { isOutage } from "../../domain/errors.ts";
import type { QueuedJob, SuppressionReason } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { TenantRef } from "../../domain/tenants/tenant.ts";

/** The list of addresses that a tenant no longer sends to. Rejects while it is unavailable. */
export interface BouncedAddresses {
  put(tenant: TenantRef, address: string, reason: SuppressionReason): Promise<unknown>;
}

/**
 * Suppresses the addresses that bounced in a delivery. If the message reached no recipient, they are on the list before
 * the queue has the outcome, and while the list is unavailable the job is retried, to be refused again. A message that
 * reached others must not be sent twice, so its outcome does not wait: an address that could not be written is written
 * when its next message bounces.
 */
export async function suppressBounced(
  outcome: Outcome,
  { recipient }: Pick<QueuedJob, "recipient">,
  put: (address: string) => Promise<unknown>,
): Promise<Outcome> {
  const addresses = bouncedIn(outcome, recipient);
  if (addresses.length === 0) return outcome;
  const written = Promise.all(addresses.map(put));
  if (outcome.kind === "delivered") {
    written.catch(() => {});
    return outcome;
  }
  try {
    await written;
    return outcome;
  } catch (error) {
    if (isOutage(error)) return NOT_WRITTEN;
    throw error;
  }
}

function bouncedIn(outcome: Outcome, recipient: string): readonly string[] {
  if (outcome.kind !== "failed" && outcome.kind !== "delivered") return [];
  const own = outcome.kind === "failed" && outcome.bounce !== undefined ? [recipient] : [];
  const others = (outcome.further ?? []).filter(({ type }) => type === "bounced");
  return [...own, ...others.map(({ result }) => String(result["recipient"] ?? recipient))];
}

const NOT_WRITTEN: Outcome = {
  kind: "retry",
  why: "the address was refused, and could not be suppressed yet",
  afterMs: 10_000,
  isUncounted: true,
  isUnsent: true,
};
