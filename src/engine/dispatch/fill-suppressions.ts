import { BackOff } from "../../domain/back-off.ts";
import { type Clock, sleep } from "../../domain/clock.ts";
import type { Lease } from "../../domain/jobs/queue.ts";
import type { Random } from "../../domain/random.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { logFailure } from "../../domain/telemetry.ts";
import type { LeaseTerm } from "../leases/shard-keeper.ts";
import { engineLimits } from "../limits.ts";

/** Loads a shard's suppressions into the queue. */
export interface SuppressionFiller {
  /** Returns whether the shard's index is complete. False: the lease was lost or `signal` aborted. */
  fill(lease: Lease, signal: AbortSignal): Promise<boolean>;
}

/**
 * Fills the shard's index before a term's first pull, repeatedly until it is complete. If the queue was lost, its
 * suppressions were lost too, and a delivery could reach a suppressed recipient. False: the term is over.
 */
export async function fillSuppressions(
  filler: SuppressionFiller,
  { lease, closing }: LeaseTerm,
  { clock, random, telemetry }: { readonly clock: Clock; readonly random: Random; readonly telemetry: Telemetry },
): Promise<boolean> {
  const waits = new BackOff(engineLimits.queueRetry, random);
  while (!closing.aborted) {
    try {
      return await filler.fill(lease, closing);
    } catch (error) {
      telemetry.count("suppression_fills_failed");
      const fields = { shard: lease.shard };
      logFailure(telemetry, "a shard delivers nothing until its suppressions are loaded", error, fields);
    }
    await sleep(clock, waits.nextMs(), closing);
  }
  return false;
}
