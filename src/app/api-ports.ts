import type { ChannelApiPorts } from "../channels/contract.ts";
import type { EventMetrics } from "../domain/jobs/event-metrics.ts";
import type { EventReader, EventSums } from "../domain/jobs/event-store.ts";
import type { JobQuestions } from "../domain/jobs/job-questions.ts";
import type {
  AllFinishedJobs,
  AllQueuedJobs,
  FinishedJobs,
  LaterEvents,
  QueuedJobs,
} from "../domain/jobs/job-search.ts";
import type { OperatorSums } from "../domain/jobs/operator-sums.ts";
import type { FrontQueue, IdempotencyKeys } from "../domain/jobs/queue.ts";
import type { DeviceComplaint, SandboxView } from "../domain/jobs/report.ts";
import type { JobRetries } from "../domain/jobs/retry.ts";
import type { JobSchedule } from "../domain/jobs/schedule.ts";
import type { ProcessStatuses } from "../domain/process-status.ts";
import type { HistoryErasure, JobErasure, TenantQueueRemoval } from "../domain/tenants/erasure.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import type { MailHistory, ReputationRules } from "../domain/tenants/reputation.ts";
import type { EventExport } from "../events/endpoints/export-endpoint.ts";
import type { CallTurns } from "../http/call-turns.ts";
import type { AuditRepository } from "../operators/audit-log.ts";
import type { OperatorRepository } from "../operators/operator-repository.ts";
import type { Overview } from "../operators/overview/overview.ts";
import type { Purging } from "../tenants/endpoints/steering-endpoints.ts";
import type { SuppressionList } from "../tenants/suppression-list.ts";
import type { WebhookEndpointPorts } from "../webhooks/webhook-endpoints.ts";

/** The dependencies of all rooms' endpoints. */
export interface ApiPorts extends Omit<ChannelApiPorts, "passDesk"> {
  readonly queue: FrontQueue &
    IdempotencyKeys &
    QueuedJobs &
    AllQueuedJobs &
    JobErasure &
    Pick<TenantQueueRemoval, "unfinishedJobs">;
  /** Questions about jobs to the processes that deliver. */
  readonly questions: Pick<JobQuestions, "ask">;
  readonly processStatuses: Pick<ProcessStatuses, "statuses">;
  /** How many shards the queue has. */
  readonly shards: number;
  readonly operatorAccounts: OperatorRepository;
  readonly audit: AuditRepository;
  readonly eventStore: EventReader & EventSums;
  readonly finishedJobs: FinishedJobs & AllFinishedJobs & LaterEvents;
  readonly eventMetrics: EventMetrics;
  readonly mailHistory: MailHistory;
  readonly reputationRules: ReputationRules;
  readonly operatorSums: OperatorSums;
  /** In which tenants read the event store. */
  readonly reads: CallTurns;
  readonly exports: EventExport;
  readonly retries: JobRetries;
  readonly schedule: JobSchedule;
  /** How the whole service is. */
  readonly overview: Pick<Overview, "now">;
  /** The queue's part of a purge. */
  readonly purging: Purging;
  readonly suppressions: Pick<SuppressionList, "put" | "ensure" | "putOwn" | "remove" | "page" | "erase">;
  /** The event store's part of an erasure. */
  readonly history: HistoryErasure;
  readonly recipients: RecipientIndex;
  /** Tries tenants' webhooks. */
  readonly webhooks: WebhookEndpointPorts["webhooks"];
  /** Null: real providers are in use. */
  readonly sandbox: SandboxView | null;
  /** The complaints of people's devices, newest first. */
  readonly deviceLog: {
    latest(limit: number): readonly DeviceComplaint[] | Promise<readonly DeviceComplaint[]>;
  };
}
