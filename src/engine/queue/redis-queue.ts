import { Cluster, type Redis } from "ioredis";
import { isJobId } from "../../domain/ids.ts";
import type { BatchPiece, BatchQueue, KnownBatch, PieceResult } from "../../domain/jobs/batch.ts";
import type { ChannelName, JobRecord, QueuedJob } from "../../domain/jobs/job.ts";
import type {
  AllQueuedJobs,
  JobFilter,
  QueuedJobSummary,
  QueuedJobs,
  RecipientFilter,
} from "../../domain/jobs/job-search.ts";
import type {
  AcceptResult,
  AllowanceCall,
  CancelListener,
  Fenced,
  Idempotency,
  IdempotencyKeys,
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
  QueuedUnder,
  RateState,
  RecordAnswer,
  RecordTurn,
  Settled,
  Settlement,
} from "../../domain/jobs/queue.ts";
import type { RedisMemory, ShardDepth } from "../../domain/jobs/queue-depth.ts";
import type { ReadinessProbe } from "../../domain/jobs/report.ts";
import type { RetryCall, RetryQueue, RetryResult } from "../../domain/jobs/retry.ts";
import type { CancelResult, RescheduleResult, WaitingJobs } from "../../domain/jobs/schedule.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import type { ErasedJobs, JobErasure, TenantQueueRemoval } from "../../domain/tenants/erasure.ts";
import type {
  IndexedSuppression,
  SuppressibleMessage,
  SuppressionIndex,
  SuppressionLookup,
} from "../../domain/tenants/suppressions.ts";
import type { ChangeFeed, TenantRef } from "../../domain/tenants/tenant.ts";
import { ChannelLetters, decodeRecord, encodeTenantQueue, type QueuedChannel } from "./codec.ts";
import { connectionsTo, type RedisConnection, type RedisPlace, redisFailure, runPipeline } from "./connection.ts";
import { Meta } from "./format.ts";
import { HeardNews, hearNews, whenReady } from "./heard-news.ts";
import { beatsKey, CHANGED_CHANNEL, jobBucket, jobField, shardPrefix } from "./keys.ts";
import { RedisQuestions } from "./questions.ts";
import { QueueRoom } from "./queue-room.ts";
import { RedisIncomingMessages } from "./redis-incoming-messages.ts";
import { probeRedis } from "./redis-probe.ts";
import { RedisReplyWindows } from "./redis-reply-windows.ts";
import { RedisSenderAccounts } from "./redis-sender-accounts.ts";
import { RedisTime } from "./redis-time.ts";
import { Replicas } from "./replicas.ts";
import { Acceptor } from "./verbs/accept.ts";
import { allow } from "./verbs/allow.ts";
import { batchUnder, endBatch } from "./verbs/batches.ts";
import { measureDepth, measureMemory } from "./verbs/depth.ts";
import { eraseJobs } from "./verbs/erasing.ts";
import { RedisLeases } from "./verbs/lease.ts";
import { LookCalls } from "./verbs/look-again.ts";
import { Observer } from "./verbs/observe.ts";
import { Puller } from "./verbs/pull.ts";
import { hastenParked, removeTenant, unfinishedJobs } from "./verbs/purging.ts";
import { Quarantine } from "./verbs/quarantine.ts";
import { RecordCalls } from "./verbs/record.ts";
import { isNamed, References } from "./verbs/references.ts";
import { Retrier } from "./verbs/retry.ts";
import { cancel, reschedule } from "./verbs/schedule.ts";
import { SettleCalls } from "./verbs/settle.ts";
import { RedisStatuses } from "./verbs/status.ts";
import {
  loadSuppressions,
  putSuppression,
  removeSuppression,
  suppressedAmong,
  wasErasedSince,
} from "./verbs/suppress.ts";
import { QueueSurvey } from "./verbs/survey.ts";

export interface RedisQueueOptions extends RuntimePorts {
  readonly channels: readonly QueuedChannel[];
  readonly address: RedisPlace;
  /** How many replicas must have a job before it counts as accepted. */
  readonly replicasAcked?: number;
}

const LEASE_ROLES: readonly LeaseRole[] = ["dispatcher", "recorder"];

/**
 * The queue on Redis. Calls that must not wait behind others have their own connections: calls that requests wait for
 * (`front`), leases, large transfers (`bulk`: pulls and batches of the outbox), and all small calls (`owner`). The
 * class also carries the registry's `changed` messages, because it already holds the subscription.
 */
export class RedisQueue
  implements
    Queue,
    RetryQueue,
    IdempotencyKeys,
    BatchQueue,
    ProviderReferences,
    ChangeFeed,
    SuppressionIndex,
    SuppressionLookup,
    QueuedJobs,
    AllQueuedJobs,
    JobErasure,
    TenantQueueRemoval,
    WaitingJobs
{
  readonly probe: ReadinessProbe = {
    name: "redis",
    check: () => probeRedis(this.front, this.options.clock),
  };

  /** Messages that people wrote to the tenants' sending numbers. */
  readonly incomingMessages: RedisIncomingMessages;

  /** When people last wrote to them. */
  readonly replyWindows: RedisReplyWindows;
  readonly senderAccounts: RedisSenderAccounts;

  /** The statuses that processes publish for each other. */
  readonly statuses: RedisStatuses;

  /** The queue's own settings and identity. */
  readonly meta: Meta;

  /** Its clock. */
  readonly time: RedisTime;

  /** Questions between processes about jobs. */
  readonly questions: RedisQuestions;

  readonly shardsPerRecord: "all" | "one";

  private readonly front: RedisConnection;
  private readonly leaseLine: RedisConnection;
  private readonly bulk: RedisConnection;
  private readonly owner: RedisConnection;
  private readonly subscriber: Redis;
  private readonly letters: ChannelLetters;
  private readonly acceptor: Acceptor;
  private readonly observer: Observer;
  private readonly references: References;
  private readonly puller: Puller;
  private readonly looks: LookCalls;
  private readonly settler: SettleCalls;
  private readonly recording: RecordCalls;
  private readonly survey: QueueSurvey;
  private readonly retrier: Retrier;
  private readonly leaseCalls: RedisLeases;
  private readonly heard: HeardNews;

  constructor(private readonly options: RedisQueueOptions) {
    const { address, clock, random, telemetry } = options;
    const letters = new ChannelLetters(options.channels);
    this.letters = letters;
    const connector = connectionsTo(address, { clock, random, telemetry });
    this.front = connector.connect();
    this.leaseLine = connector.connect();
    this.bulk = connector.connect();
    this.owner = connector.connect();
    this.subscriber = connector.connectToHear(this.front);
    const shardsPerCall = this.front instanceof Cluster ? "one" : "all";
    this.shardsPerRecord = shardsPerCall;
    const room = new QueueRoom({ clock, telemetry, memory: () => this.memory() });
    this.acceptor = new Acceptor(this.front, clock, shardsPerCall, {
      letters,
      room,
      replicas: new Replicas(this.front, options.replicasAcked ?? 0),
    });
    this.observer = new Observer(this.owner, clock, shardsPerCall, letters);
    this.incomingMessages = new RedisIncomingMessages(this.front);
    this.time = new RedisTime(this.owner);
    this.replyWindows = new RedisReplyWindows(this.front);
    this.senderAccounts = new RedisSenderAccounts(this.front, clock);
    this.statuses = new RedisStatuses(this.front);
    this.meta = new Meta(this.owner, telemetry);
    this.questions = new RedisQuestions(this.front, clock, random);
    this.heard = new HeardNews(letters, (text) => void this.questions.hear(text));
    this.references = new References(this.owner, this.front, clock, telemetry);
    this.leaseCalls = new RedisLeases(this.leaseLine, clock, random);
    const quarantine = new Quarantine(this.owner, telemetry);
    const ports = { clock, quarantine, letters, shardsPerCall } as const;
    this.puller = new Puller({ connection: this.bulk, ...ports }, telemetry);
    this.looks = new LookCalls({ connection: this.owner, ...ports });
    this.settler = new SettleCalls({ connection: this.owner, ...ports });
    this.recording = new RecordCalls(this.bulk, quarantine, letters);
    // Behind large transfers, and never before a request.
    this.survey = new QueueSurvey(this.bulk, letters);
    this.retrier = new Retrier(this.bulk, clock, letters, room);
    this.subscriber.on("message", (channel: string, text: string) => this.heard.hear(channel, text));
  }

  /** Resolves when Redis answers and the subscriptions are active. Rejects with `UnavailableError`. */
  async start(): Promise<void> {
    const { clock } = this.options;
    await whenReady(this.connections(), hearNews(this.subscriber, clock), clock);
  }

  private connections(): readonly RedisConnection[] {
    return [this.front, this.leaseLine, this.bulk, this.owner, this.subscriber];
  }

  /**
   * Ends every lease. Only for a caller that knows that all former owners are dead, because it alone has the lock on
   * this Redis' data folder; otherwise their jobs would wait until the leases have been watched for their term.
   */
  async forgetOwners(shards: number): Promise<void> {
    for (const role of LEASE_ROLES) {
      await this.owner.del(beatsKey(role));
      for (let shard = 0; shard < shards; shard += 1) await this.owner.del(`${shardPrefix(shard)}:lease:${role}`);
    }
  }

  /**
   * Ends the leases of an owner that is certainly dead, so that other processes take its shards over at once. Only for
   * a caller that has seen its process end.
   */
  async forgetOwner(owner: string, shards: number): Promise<void> {
    for (const role of LEASE_ROLES) await this.leaseCalls.releaseAll(role, owner, shards);
  }

  stop(): Promise<void> {
    for (const connection of this.connections()) connection.disconnect();
    return Promise.resolve();
  }

  async admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }> {
    const answer = await this.acceptor.submit({ tenant, requestsPerMinute, job: null });
    return { limited: answer.kind === "limited", rate: answer.rate };
  }

  async accept(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult> {
    const answer = await this.acceptor.submit({ tenant, requestsPerMinute, job });
    if (answer.kind === "admitted") throw new Error("a job was counted but not queued");
    return answer;
  }

  retry(call: RetryCall): Promise<readonly RetryResult[]> {
    return this.retrier.retry(call);
  }

  async reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult> {
    if (!isJobId(jobId)) return "unknown";
    return reschedule(this.front, tenant, jobId, { dueMs, nowMs: this.options.clock.nowMs() });
  }

  async cancel(tenant: TenantRef, jobId: string): Promise<CancelResult> {
    return isJobId(jobId) ? cancel(this.front, tenant, jobId) : "unknown";
  }

  unrecordedContents(tenant: TenantRef, jobIds: readonly string[]) {
    return this.survey.unrecordedContents(tenant, jobIds);
  }

  async waitingContent(tenant: TenantRef, jobId: string) {
    return isJobId(jobId) ? this.survey.waitingContent(tenant, jobId) : null;
  }

  async job(tenant: TenantRef, jobId: string): Promise<JobRecord | null> {
    if (!isJobId(jobId)) return null;
    const prefix = shardPrefix(tenant.shard);
    const { names } = this.letters;
    const tenantQueues = names.map((channel) =>
      encodeTenantQueue(this.letters, { tenantId: tenant.tenantId, channel }),
    );
    // The cursors first: a job that is settled in between is final by its record, and never looks pending again.
    const [cursors, text] = await runPipeline(
      this.front
        .pipeline()
        .hmget(`${prefix}:cursor`, ...tenantQueues)
        .hget(`${prefix}:jobs:${jobBucket(jobId)}`, jobField(jobId)),
    );
    if (typeof text !== "string" || !Array.isArray(cursors)) return null;
    const job = decodeRecord(this.letters, jobId, text, (channel) => String(cursors[names.indexOf(channel)] ?? ""));
    if (job.tenantId !== tenant.tenantId) return null;
    const fallbackOf = job.dueMs === undefined ? null : await this.survey.findMainJobId(tenant, jobId);
    return fallbackOf === null ? job : { ...job, fallbackOf };
  }

  waitingJobs(tenant: TenantRef, filter: JobFilter) {
    return this.survey.waitingJobs(tenant, filter);
  }

  async waitingJob(tenant: TenantRef, jobId: string): Promise<QueuedJobSummary | null> {
    return isJobId(jobId) ? this.survey.waitingJob(tenant, jobId) : null;
  }

  async jobsAhead(tenant: TenantRef, channel: ChannelName, jobId: string): Promise<number | null> {
    return isJobId(jobId) ? this.survey.jobsAhead(tenant, channel, jobId) : null;
  }

  waitingAnywhere(shards: number, filter: RecipientFilter) {
    return this.survey.waitingAnywhere(shards, filter);
  }

  async findOwner(shards: number, jobId: string): Promise<TenantRef | null> {
    if (!isJobId(jobId)) return null;
    const looks = Array.from({ length: shards }, async (_, shard) => {
      const record = await this.front
        .hget(`${shardPrefix(shard)}:jobs:${jobBucket(jobId)}`, jobField(jobId))
        .catch((error: unknown) => Promise.reject(redisFailure(error)));
      // A record begins with its tenant.
      return record === null ? [] : [{ tenantId: record.slice(0, record.indexOf(" ")), shard }];
    });
    return (await Promise.all(looks)).flat()[0] ?? null;
  }

  acceptPiece(tenant: TenantRef, requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult> {
    return this.acceptor.submitPiece(tenant, requestsPerMinute, piece);
  }

  batchUnder(tenant: TenantRef, idempotency: Idempotency): Promise<KnownBatch | null> {
    return batchUnder(this.front, tenant, idempotency);
  }

  endBatch(tenant: TenantRef, baseId: string, refused: string): Promise<void> {
    return endBatch(this.front, tenant, { baseId, refused });
  }

  async queuedUnder({ tenantId, shard }: TenantRef, { key, fingerprint }: Idempotency): Promise<QueuedUnder | null> {
    const known = await this.front
      .get(`${shardPrefix(shard)}:idem:${tenantId}:${key}`)
      .catch((error: unknown) => Promise.reject(redisFailure(error)));
    // "<job id> <fingerprint>", as accept.lua writes it.
    return known === null ? null : { jobId: known.slice(0, 36), isSame: known.slice(37) === fingerprint };
  }

  findReferencedJobs(references: readonly string[]): Promise<readonly (JobAddress | null)[]> {
    return this.references.findReferencedJobs(references);
  }

  observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult> {
    return this.observer.submit({ tenant, observation });
  }

  /** Measures the jobs and events that wait in the shard, in a bounded number of short calls. */
  depth(shard: number): Promise<ShardDepth> {
    return measureDepth(this.front, this.letters, shard);
  }

  memory(): Promise<RedisMemory> {
    return measureMemory(this.front);
  }

  leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null | undefined)[]> {
    return this.leaseCalls.leases(role, shards);
  }
  acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null> {
    return this.leaseCalls.acquire(shard, role, owner, seen);
  }
  renew(lease: Lease): Promise<boolean> {
    return this.leaseCalls.renew(lease);
  }
  release(lease: Lease): Promise<void> {
    return this.leaseCalls.release(lease);
  }
  heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>> {
    return this.leaseCalls.heartbeat(role, owner);
  }
  resign(role: LeaseRole, owner: string, beats?: number): Promise<void> {
    return this.leaseCalls.resign(role, owner, beats);
  }
  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void {
    return this.heard.onRelease(listener);
  }

  pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced> {
    return this.puller.pull(lease, request);
  }
  lookAgain(lease: Lease, job: QueuedJob): Promise<JobNews | Fenced> {
    return this.looks.lookAgain(lease, job);
  }
  async settle(
    lease: Lease,
    settlements: readonly Settlement[],
    shardTimeMs: number | null = null,
  ): Promise<Settled | Fenced> {
    return this.settleAll(settlements, (some) => this.settler.settle(lease, some, shardTimeMs));
  }
  async settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null = null): Promise<void> {
    await this.settleAll(settlements, (some) => this.settler.settleLent(lease, some, shardTimeMs));
  }

  /**
   * Settlements that name a message wait until the reference is stored, because a report can arrive at once. In a
   * cluster, where the reference may belong to another node than the shard, the other settlements do not wait for it.
   */
  private async settleAll<T>(settlements: readonly Settlement[], settle: (some: readonly Settlement[]) => Promise<T>) {
    const named = settlements.filter(isNamed);
    if (named.length === 0) return settle(settlements);
    // A process that has lost the lease has handed its messages over nevertheless.
    const remembered = this.references.remember(named);
    remembered.catch(() => {});
    const isTogether = !(this.owner instanceof Cluster) || named.length === settlements.length;
    const apart = isTogether ? null : await settle(settlements.filter((settlement) => !isNamed(settlement)));
    await remembered;
    const answer = await settle(isTogether ? settlements : named);
    // Reports do not change the settlements that name a message: those have ended with success.
    return apart instanceof Set && answer === "settled" ? apart : answer;
  }
  allow(lease: Lease, call: AllowanceCall): Promise<number | Fenced> {
    return allow(this.owner, this.letters, lease, call);
  }
  record(turns: readonly RecordTurn[]): Promise<RecordAnswer> {
    return this.recording.record(turns);
  }

  putSuppression(tenant: TenantRef, name: string, reason: string): Promise<void> {
    return putSuppression(this.front, tenant, name, reason);
  }
  removeSuppression(tenant: TenantRef, name: string): Promise<void> {
    return removeSuppression(this.front, tenant, name);
  }
  wasErasedSince(tenant: TenantRef, address: string, sinceMs: number): Promise<boolean> {
    return wasErasedSince(this.front, tenant, address, sinceMs);
  }
  loadSuppressions(lease: Lease, entries: readonly IndexedSuppression[], isLast: boolean) {
    return loadSuppressions(this.owner, lease, entries, isLast);
  }

  suppressedAmong(tenant: TenantRef, addresses: readonly string[], message: SuppressibleMessage) {
    return suppressedAmong(this.owner, tenant, addresses, message);
  }

  eraseJobs(tenant: TenantRef, recipient: string): Promise<ErasedJobs> {
    return eraseJobs({ connection: this.bulk, survey: this.survey, clock: this.options.clock }, tenant, recipient);
  }

  unfinishedJobs(tenant: TenantRef): Promise<number> {
    return unfinishedJobs(this.owner, tenant);
  }

  hasUnrecorded(tenant: TenantRef): Promise<boolean> {
    return this.survey.hasUnrecorded(tenant);
  }

  removeTenant(tenant: TenantRef): Promise<void> {
    return removeTenant(this.owner, tenant);
  }

  hastenParked(tenant: TenantRef, channels: readonly ChannelName[]): Promise<number> {
    return hastenParked(this.owner, this.letters, tenant, channels);
  }

  onJobs(listener: (shard: number) => void): () => void {
    return this.heard.onJobs(listener);
  }

  onCancel(listener: CancelListener): () => void {
    return this.heard.onCancel(listener);
  }

  announce(tenantId: string | null): void {
    this.front.publish(CHANGED_CHANNEL, tenantId ?? "").catch((error: unknown) => {
      this.options.telemetry.log("warn", "a change was not announced; other processes see it within a second", {
        error: error instanceof Error ? error.message : String(error),
      });
    });
  }

  onChange(listener: (tenantId: string | null) => void): () => void {
    return this.heard.onChange(listener);
  }
}
