import { sleep } from "../../src/domain/clock.ts";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import type { BatchPiece, BatchQueue, KnownBatch, PieceResult } from "../../src/domain/jobs/batch.ts";
import type { JobRecord, KeptContent, QueuedJob } from "../../src/domain/jobs/job.ts";
import {
  type AcceptResult,
  type AllowanceCall,
  type CancelListener,
  FENCED,
  type Fenced,
  type FrontQueue,
  type Idempotency,
  type JobNews,
  type Lease,
  type LeaseRole,
  type LeaseState,
  type NewJob,
  type Observation,
  type ObserveResult,
  type OwnerQueue,
  type PullRequest,
  type PullResult,
  type RateState,
  type RecordAnswer,
  type RecorderQueue,
  type RecordTurn,
  type Settled,
  type Settlement,
} from "../../src/domain/jobs/queue.ts";
import type { RetryCall, RetryQueue, RetryResult, WaitingContent } from "../../src/domain/jobs/retry.ts";
import type { CancelResult, RescheduleResult, WaitingJobs } from "../../src/domain/jobs/schedule.ts";
import { limits } from "../../src/domain/limits.ts";
import type { Tenant, TenantRef } from "../../src/domain/tenants/tenant.ts";
import type { Call, Network, Server } from "./network.ts";
import type { SimProcess } from "./sim-process.ts";
import type { WatchedQueue } from "./watched-queue.ts";

/** When a call left, by the clock of its process, and whether an earlier try may have taken effect. */
interface ClientCall {
  readonly callerMs: number;
  readonly isRepeat: boolean;
}

/** One process's way to the queue, over the wire. */
export class SimQueue implements FrontQueue, BatchQueue, RetryQueue, OwnerQueue, RecorderQueue, WaitingJobs {
  constructor(
    private readonly process: SimProcess,
    private readonly network: Network,
    private readonly server: Server,
    private readonly queue: WatchedQueue,
    private readonly tenants: ReadonlyMap<string, Tenant>,
    readonly shardsPerRecord: "all" | "one",
  ) {}

  admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }> {
    return this.call("admit", () => this.queue.state.now((queue) => queue.admit(tenant, requestsPerMinute)));
  }

  async accept(ref: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult> {
    const tenant = this.tenant(ref);
    const { timesForgot } = this.queue;
    const accept = (at: ClientCall) => this.queue.accept(tenant, requestsPerMinute, job, at);
    const result = await this.untilAnswered("accept", accept, job.payload.length);
    this.queue.heardAccept(tenant, job, result, timesForgot);
    return result;
  }

  acceptPiece(ref: TenantRef, requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult> {
    const tenant = this.tenant(ref);
    const bytes = piece.items.reduce((sum, { job }) => sum + (job?.payload.length ?? 0), 0);
    const accept = (at: ClientCall) => this.queue.acceptPiece(tenant, requestsPerMinute, piece, at);
    return this.untilAnswered("accept piece", accept, bytes);
  }

  batchUnder(tenant: TenantRef, idempotency: Idempotency): Promise<KnownBatch | null> {
    return this.call("batch under", () => this.queue.state.now((queue) => queue.batchUnder(tenant, idempotency)));
  }

  endBatch(tenant: TenantRef, baseId: string, refused: string): Promise<void> {
    return this.call("end batch", () => this.queue.state.now((queue) => queue.endBatch(tenant, baseId, refused)));
  }

  /** Repeats a call whose effect is unknown for a while, as the caller of the real script does. */
  private async untilAnswered<T>(name: string, effect: (at: ClientCall) => T, bytes: number): Promise<T> {
    const { clock } = this.process;
    const giveUpAtMs = clock.monotonicMs() + limits.acceptRetryMs;
    const callerMs = clock.nowMs();
    for (let isRepeat = false; ; isRepeat = true) {
      try {
        const at = { callerMs, isRepeat };
        return await this.call(name, () => effect(at), { bytes });
      } catch (error) {
        const canRepeat = error instanceof TransportError || error instanceof UnavailableError;
        if (!canRepeat || clock.monotonicMs() >= giveUpAtMs) throw error;
      }
      await sleep(clock, 50);
    }
  }

  /** Repeats a call whose effect is unknown for a while, as the caller of the real script does. */
  async retry(call: RetryCall): Promise<readonly RetryResult[]> {
    const { clock } = this.process;
    const giveUpAtMs = clock.monotonicMs() + limits.acceptRetryMs;
    for (let isRepeat = false; ; ) {
      try {
        const again = isRepeat;
        return await this.call("retry", () => this.queue.retry(call, again));
      } catch (error) {
        const canRepeat = error instanceof TransportError || error instanceof UnavailableError;
        if (error instanceof TransportError) isRepeat = true;
        if (!canRepeat || clock.monotonicMs() >= giveUpAtMs) throw error;
      }
      await sleep(clock, 50);
    }
  }

  unrecordedContents(tenant: TenantRef, jobIds: readonly string[]): Promise<ReadonlyMap<string, KeptContent>> {
    return this.call("unrecorded contents", () =>
      this.queue.state.now((queue) => queue.unrecordedContents(tenant, jobIds)),
    );
  }

  waitingContent(tenant: TenantRef, jobId: string): Promise<WaitingContent | null> {
    return this.call("waiting content", () => this.queue.state.now((queue) => queue.waitingContent(tenant, jobId)));
  }

  job(tenant: TenantRef, jobId: string): Promise<JobRecord | null> {
    return this.call("job", () => this.queue.state.now((queue) => queue.job(tenant, jobId)));
  }

  observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult> {
    return this.call("observe", () => this.queue.observe(this.tenant(tenant), observation));
  }

  leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null | undefined)[]> {
    return this.call(`leases ${role}`, () => this.queue.state.now((queue) => queue.leases(role, shards)));
  }

  async acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null> {
    const sentAtMs = this.process.clock.monotonicMs();
    const lease = await this.call(`acquire ${role} ${shard}`, () =>
      this.queue.acquire(this.process, { shard, role, owner, seen }),
    );
    if (lease !== null) this.queue.leases.confirmed(lease, sentAtMs);
    return lease;
  }

  async renew(lease: Lease): Promise<boolean> {
    const sentAtMs = this.process.clock.monotonicMs();
    const isHeld = await this.call(`renew ${lease.role} ${lease.shard}`, () => this.queue.renew(lease));
    if (isHeld) this.queue.leases.confirmed(lease, sentAtMs);
    return isHeld;
  }

  release(lease: Lease): Promise<void> {
    this.queue.leases.givenBack(lease);
    return this.call(`release ${lease.role} ${lease.shard}`, () => this.queue.release(lease));
  }

  heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>> {
    return this.call("heartbeat", () => this.queue.state.now((queue) => queue.heartbeat(role, owner)));
  }

  resign(role: LeaseRole, owner: string, beats?: number): Promise<void> {
    return this.call("resign", () => this.queue.state.now((queue) => queue.resign(role, owner, beats)));
  }

  /** Hints go by the wire, too, and may be lost there. */
  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void {
    return this.queue.state.onRelease((role, shard) => this.network.hint(this.process, () => listener(role, shard)));
  }

  async pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced> {
    const { process, queue } = this;
    queue.asked(process, request);
    try {
      const sentAtMs = queue.nowMs();
      const callerMs = process.clock.nowMs();
      const pull = () => queue.pull(lease, request, { sentAtMs, callerMs });
      const result = await this.call(`pull ${lease.shard}`, pull, { replyBytes });
      queue.heardPull(process, lease, result);
      return result;
    } finally {
      queue.answered(process, request);
    }
  }

  async lookAgain(lease: Lease, job: QueuedJob): Promise<JobNews | Fenced> {
    this.queue.looksAgain(this.process, job);
    try {
      return await this.call(`look ${lease.shard}`, () => this.queue.lookAgain(lease, job));
    } finally {
      this.queue.lookedAgain(this.process, job);
    }
  }

  async settle(
    lease: Lease,
    settlements: readonly Settlement[],
    shardTimeMs: number | null,
  ): Promise<Settled | Fenced> {
    const sentAtMs = this.queue.nowMs();
    const settle = () => this.queue.settle(this.process, { lease, settlements, shardTimeMs }, sentAtMs);
    const answer = await this.call(`settle ${lease.shard}`, settle);
    this.queue.heardSettle(lease, settlements);
    return answer;
  }

  settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<void> {
    const sentAtMs = this.queue.nowMs();
    const settle = () => this.queue.settleLent(this.process, { lease, settlements, shardTimeMs }, sentAtMs);
    return this.call(`settleLent ${lease.shard}`, settle);
  }

  allow(lease: Lease, call: AllowanceCall): Promise<number | Fenced> {
    return this.call(`allow ${lease.shard}`, () => this.queue.allow(lease, call));
  }

  record(turns: readonly RecordTurn[]): Promise<RecordAnswer> {
    const shards = turns.map(({ lease }) => lease.shard).join(" ");
    return this.call(`record ${shards}`, () => this.queue.record(turns));
  }

  /** Hints go by the wire, too, and may be lost there. */
  onJobs(listener: (shard: number) => void): () => void {
    return this.queue.onJobs((shard) => this.network.hint(this.process, () => listener(shard)));
  }

  onCancel(listener: CancelListener): () => void {
    return this.queue.state.onCancel((...asked) => this.network.hint(this.process, () => listener(...asked)));
  }

  reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult> {
    const callerMs = this.process.clock.nowMs();
    return this.call("reschedule", () => this.queue.reschedule(tenant, jobId, dueMs, callerMs));
  }

  cancel(tenant: TenantRef, jobId: string): Promise<CancelResult> {
    return this.call("cancel", () => this.queue.cancel(this.tenant(tenant), jobId));
  }

  private call<T>(name: string, effect: () => T, sizes: Pick<Call<T>, "bytes" | "replyBytes"> = {}): Promise<T> {
    return this.network.call({ from: this.process, to: this.server, name, effect, ...sizes });
  }

  private tenant({ tenantId }: TenantRef): Tenant {
    const tenant = this.tenants.get(tenantId);
    if (tenant === undefined) throw new Error(`the simulation has no tenant ${tenantId}`);
    return tenant;
  }
}

function replyBytes(result: PullResult | Fenced): number {
  if (result === FENCED) return 0;
  return result.tenantQueues.flatMap(({ jobs }) => jobs).reduce((sum, { payload }) => sum + payload.length, 0);
}
