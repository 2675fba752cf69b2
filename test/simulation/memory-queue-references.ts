import type { JobAddress, Settlement } from "../../src/domain/jobs/queue.ts";
import { limits } from "../../src/domain/limits.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { alive, type Expiring } from "./memory-queue-shard.ts";

/** By `<hour> <reference>`: the queue keeps those of an hour together. */
export type References = Map<string, Expiring<JobAddress>>;

/** The jobs can be found by the references that their settlements name. */
export function remember(known: References, settlements: readonly Settlement[], nowMs: number): void {
  for (const settlement of settlements) {
    if (settlement.kind !== "final" || settlement.providerRef === undefined) continue;
    const { tenantId, jobId } = settlement.job;
    const key = `${hourOf(nowMs)} ${settlement.providerRef}`;
    known.set(key, { value: { tenantId, jobId }, expiresMs: nowMs + limits.providerRefKeptMs });
  }
}

/** The newest counts, also one of the hour to come. */
export function jobsOf(known: References, references: readonly string[], nowMs: number): (JobAddress | null)[] {
  return references.map((reference) => {
    for (let hour = hourOf(nowMs) + 1; hour >= hourOf(nowMs - limits.providerRefKeptMs); hour -= 1) {
      const found = alive(known.get(`${hour} ${reference}`), nowMs);
      if (found !== null) return found.value;
    }
    return null;
  });
}

function hourOf(nowMs: number): number {
  return Math.floor(nowMs / engineLimits.providerRefHourMs);
}
