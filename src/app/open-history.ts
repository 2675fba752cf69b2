import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { Retries } from "../engine/retries/retries.ts";
import { JobScheduler } from "../engine/schedule/job-schedule.ts";
import { eventStoreInTurn } from "../events/history-in-turn.ts";
import { eventLimits } from "../events/limits.ts";
import type { NO_EVENT_STORE } from "../events/no-event-store.ts";
import { CallTurns } from "../http/call-turns.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { createRetryCharges } from "./of-channels.ts";
import type { Payloads } from "./open-payloads.ts";
import type { OpenRegistry } from "./open-registry.ts";
import type { OpenEventStore } from "./stores.ts";
import { toReputationRules } from "./sweeps.ts";

interface HistoryPorts {
  readonly queue: RedisQueue;
  readonly eventStore: OpenEventStore | typeof NO_EVENT_STORE;
  readonly registry: OpenRegistry;
  readonly payloads: Payloads;
}

/** How the API reads what was recorded. */
export function openHistory(
  { eventStore, registry, queue, payloads }: HistoryPorts,
  {
    channels,
    config,
    telemetry,
  }: { readonly channels: readonly AppChannel[]; readonly config: Config; readonly telemetry: Telemetry },
) {
  const {
    reader,
    metrics: eventMetrics,
    operatorSums,
    mailHistory,
    exports,
    finishedJobs,
    failedJobs,
    erasure,
  } = eventStore;
  const { recipients } = registry;
  const failed = failedJobs(registry.contents);
  const charges = createRetryCharges(channels, registry);
  const retries = new Retries({
    queue,
    eventStore: {
      job: (tenantId, jobId) => reader.job(tenantId, jobId),
      failedJobs: (tenantId, jobIds) => failed.failedJobs(tenantId, jobIds),
    },
    payloads: payloads.store,
    charges,
    clock: systemClock,
  });
  const common = { queue, payloads: payloads.store, charges, clock: systemClock, telemetry };
  const reads = new CallTurns(eventLimits.historyReads, systemClock);
  const schedule = new JobScheduler({ ...common, eventStore: eventStoreInTurn(reader, reads) });
  const found = finishedJobs(recipients);
  const history = erasure(recipients);
  const { questions, statuses: processStatuses } = queue;
  const asked = {
    eventStore: reader,
    eventMetrics,
    mailHistory,
    reputationRules: toReputationRules(config),
    operatorSums,
    exports,
    finishedJobs: found,
    history,
    recipients,
    questions,
    processStatuses,
  };
  return { ...asked, reads, retries, schedule };
}

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
  return { findOwner };
}
