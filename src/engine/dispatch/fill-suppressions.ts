import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import { limits } from "../../domain/limits.ts";
import type { Lease } from "../../domain/queue.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { LeaseTerm } from "../leases/shard-keeper.ts";

/** Sees to it that the queue knows whom a shard's tenants must not send to. */
export interface SuppressionFiller {
  /** Whether the shard's index is complete. False: the lease was lost or `signal` aborted. */
  fill(lease: Lease, signal: AbortSignal): Promise<boolean>;
}

/**
 * Before a term's first pull: repeats the filling of the shard's index until it is complete. Without it nothing may be
 * delivered, or a queue that was lost would take its suppressions with it. False: the term is over.
 */
export async function fillSuppressions(
  filler: SuppressionFiller,
  { lease, closing }: LeaseTerm,
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
): Promise<boolean> {
  for (let waitMs = 50; !closing.aborted; waitMs = Math.min(2 * waitMs, limits.queueRetryMs)) {
    try {
      return await filler.fill(lease, closing);
    } catch (error) {
      const expected = isOutage(error);
      telemetry.count("suppression_fills_failed");
      telemetry.log(expected ? "warn" : "error", "a shard waits for its suppressions, and delivers nothing", {
        shard: lease.shard,
        error: String(error),
      });
    }
    await sleep(clock, waitMs, closing);
  }
  return false;
}
