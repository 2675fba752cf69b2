import type { BatchPiece, BatchQueue, KnownBatch, PieceResult } from "../../src/domain/jobs/batch.ts";
import type { JobRecord, KeptContent, QueuedJob } from "../../src/domain/jobs/job.ts";
import type {
  AcceptResult,
  AllowanceCall,
  CancelListener,
  Fenced,
  Idempotency,
  JobAddress,
  JobNews,
  Lease,
  LeaseRole,
  LeaseState,
  NewJob,
  Observation,
  ObserveResult,
  ProviderReferences,
  PullRequest,
  PullResult,
  Queue,
  RateState,
  RecordAnswer,
  RecordTurn,
  Settled,
  Settlement,
} from "../../src/domain/jobs/queue.ts";
import type { RetryCall, RetryQueue, RetryResult, WaitingContent } from "../../src/domain/jobs/retry.ts";
import type { CancelResult, RescheduleResult, WaitingJobs } from "../../src/domain/jobs/schedule.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import type { QueueState } from "./memory-queue-state.ts";

/** The queue in memory: the whole port, over a state that callers may share, copy and set back. Never loses a call. */
export class MemoryQueue implements Queue, BatchQueue, RetryQueue, ProviderReferences, WaitingJobs {
  readonly shardsPerRecord = "all";

  constructor(readonly state: QueueState) {}

  async admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }> {
    return this.state.admitNow(tenant, requestsPerMinute);
  }
  async accept(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult> {
    return this.state.acceptNow(tenant, requestsPerMinute, job);
  }
  async acceptPiece(tenant: TenantRef, requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult> {
    return this.state.acceptPieceNow(tenant, requestsPerMinute, piece);
  }
  async batchUnder(tenant: TenantRef, idempotency: Idempotency): Promise<KnownBatch | null> {
    return this.state.batchUnderNow(tenant, idempotency);
  }
  async endBatch(tenant: TenantRef, baseId: string, refused: string): Promise<void> {
    this.state.endBatchNow(tenant, baseId, refused);
  }
  async retry(call: RetryCall): Promise<readonly RetryResult[]> {
    return this.state.retryNow(call);
  }
  async reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult> {
    return this.state.rescheduleNow(tenant, jobId, dueMs);
  }
  async cancel(tenant: TenantRef, jobId: string): Promise<CancelResult> {
    return this.state.cancelNow(tenant, jobId);
  }
  async unrecordedContents(tenant: TenantRef, jobIds: readonly string[]): Promise<ReadonlyMap<string, KeptContent>> {
    return this.state.unrecordedContentsNow(tenant, jobIds);
  }
  async waitingContent(tenant: TenantRef, jobId: string): Promise<WaitingContent | null> {
    return this.state.waitingContentNow(tenant, jobId);
  }
  async job(tenant: TenantRef, jobId: string): Promise<JobRecord | null> {
    return this.state.jobNow(tenant, jobId);
  }
  async observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult> {
    return this.state.observeNow(tenant, observation);
  }

  async leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null)[]> {
    return this.state.leasesNow(role, shards);
  }
  async acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null> {
    return this.state.acquireNow(shard, role, owner, seen);
  }
  async renew(lease: Lease): Promise<boolean> {
    return this.state.renewNow(lease);
  }
  async release(lease: Lease): Promise<void> {
    this.state.releaseNow(lease);
  }
  async heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>> {
    return this.state.heartbeatNow(role, owner);
  }
  async resign(role: LeaseRole, owner: string, beats?: number): Promise<void> {
    this.state.resignNow(role, owner, beats);
  }
  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void {
    return this.state.onRelease(listener);
  }

  async pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced> {
    return this.state.pullNow(lease, request);
  }
  async lookAgain(lease: Lease, job: QueuedJob): Promise<JobNews | Fenced> {
    return this.state.lookAgainNow(lease, job);
  }
  async settle(
    lease: Lease,
    settlements: readonly Settlement[],
    shardTimeMs: number | null,
  ): Promise<Settled | Fenced> {
    return this.state.settleNow({ lease, settlements, shardTimeMs });
  }
  async settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<void> {
    this.state.settleLentNow({ lease, settlements, shardTimeMs });
  }
  async allow(lease: Lease, call: AllowanceCall): Promise<number | Fenced> {
    return this.state.allowNow(lease, call);
  }
  async findReferencedJobs(references: readonly string[]): Promise<readonly (JobAddress | null)[]> {
    return this.state.jobsOfNow(references);
  }
  async record(turns: readonly RecordTurn[]): Promise<RecordAnswer> {
    return this.state.recordNow(turns);
  }

  onJobs(listener: (shard: number) => void): () => void {
    return this.state.onJobs(listener);
  }
  onCancel(listener: CancelListener): () => void {
    return this.state.onCancel(listener);
  }
}
