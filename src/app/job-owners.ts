import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import type { OpenRegistry } from "./open-registry.ts";

export interface OwnersPorts {
  readonly queue: Pick<RedisQueue, "findOwner">;
  readonly eventStore: {
    finishedJobs(recipients: OpenRegistry["recipients"]): { findOwner(jobId: string): Promise<string | null> };
  };
  readonly registry: Pick<OpenRegistry, "recipients">;
}

/** Finds the owner of a job in the queue or in the event store. */
export function jobOwners({ queue, eventStore, registry }: OwnersPorts, shards: number) {
  const finished = eventStore.finishedJobs(registry.recipients);
  const findOwner = async (jobId: string) =>
    (await queue.findOwner(shards, jobId))?.tenantId ?? (await finished.findOwner(jobId));
  return { ownerOf: findOwner };
}
