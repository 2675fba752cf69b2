import type { Clock } from "../../src/core/clock.ts";
import { isJobId } from "../../src/core/ids.ts";
import { isFinal, type JobRecord } from "../../src/core/job.ts";
import {
  type AcceptResult,
  type AllowanceCall,
  FENCED,
  type Fenced,
  type JobAddress,
  type Lease,
  type LeaseRole,
  type NewJob,
  type Observation,
  type ObserveResult,
  type PullRequest,
  type PullResult,
  type RateState,
  type RecordBatch,
  type Settlement,
} from "../../src/core/journal.ts";
import type { Random } from "../../src/core/random.ts";
import type { TenantRef } from "../../src/core/tenant.ts";
import { accept, admit } from "./memory-journal-accept.ts";
import { allow } from "./memory-journal-allow.ts";
import { observe, type Sighting } from "./memory-journal-observe.ts";
import { pull } from "./memory-journal-pull.ts";
import { record } from "./memory-journal-record.ts";
import { jobsOf, type References, remember } from "./memory-journal-references.ts";
import { settle } from "./memory-journal-settle.ts";
import {
  alive,
  boxOf,
  type Expiring,
  emptyShard,
  isBeyond,
  type ShardState,
  storedJob,
} from "./memory-journal-shard.ts";

/** All that a journal holds at one moment. Plain data; what happens later does not reach it. */
export interface JournalSnapshot {
  readonly shards: ReadonlyMap<number, ShardState>;
  /** By role: until when each member lives. */
  readonly members: ReadonlyMap<LeaseRole, ReadonlyMap<string, number>>;
  readonly references: ReadonlyMap<string, Expiring<JobAddress>>;
}

/**
 * The journal as a machine without time, chance or network of its own: every call takes effect and answers at once, at
 * the instant that `clock` names (Redis's own clock; only `nowMs` is read).
 *
 * J1. It answers what the scripts on Redis answer, and holds what they write: a model test runs both side by side.
 * J2. A call changes everything that it has to or, where it answers FENCED, nothing.
 * J3. `restore` forgets all that came after its snapshot, as a Redis does that lost its last writes. Lease tokens hold
 *     chance of their own and so never repeat, even then.
 */
export class JournalState {
  private readonly shards = new Map<number, ShardState>();
  private readonly members = new Map<LeaseRole, Map<string, number>>();
  private readonly references: References = new Map();
  private readonly mailListeners = new Set<(shard: number) => void>();

  constructor(
    private readonly clock: Pick<Clock, "nowMs">,
    private readonly random: Random,
  ) {}

  admitNow(tenant: TenantRef, requestsPerMinute: number): { limited: boolean; rate: RateState } {
    return admit(this.shard(tenant.shard), { tenant, requestsPerMinute, nowMs: this.clock.nowMs() });
  }

  /** `isRepeated`: an earlier try of this very call may have landed. */
  acceptNow(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob, isRepeated = false): AcceptResult {
    const request = { tenant, requestsPerMinute, job, isRepeated, nowMs: this.clock.nowMs() };
    return accept(this.shard(tenant.shard), request, () => this.announceMail(tenant.shard));
  }

  jobNow(tenant: TenantRef, jobId: string): JobRecord | null {
    if (!isJobId(jobId)) return null;
    const shard = this.shard(tenant.shard);
    const stored = storedJob(shard, jobId, this.clock.nowMs());
    if (stored === null || stored.tenantId !== tenant.tenantId) return null;
    const { tenantId, channel, attempts, events, result, entryId, isHeldPending } = stored;
    const cursor = shard.cursors.get(boxOf({ tenantId, channel }));
    const isPulled = cursor !== undefined && entryId !== null && !isBeyond(entryId, cursor);
    const status = stored.status === "pending" && isPulled && !isHeldPending ? "running" : stored.status;
    return { jobId, tenantId, channel, status, attempts, result: isFinal(status) ? (result ?? {}) : null, events };
  }

  observeNow(tenant: TenantRef, observation: Observation): ObserveResult {
    return this.observeTogetherNow(tenant.shard, [{ tenant, observation }])[0] ?? "unknown";
  }

  /** What came in one call: its events are one entry of the shard's outbox. */
  observeTogetherNow(shard: number, sightings: readonly Sighting[]): ObserveResult[] {
    return observe(this.shard(shard), sightings, this.clock.nowMs());
  }

  acquireNow(shardNumber: number, role: LeaseRole, _owner: string, ttlMs: number): Lease | null {
    const shard = this.shard(shardNumber);
    const bits = Buffer.from(this.random.fill(new Uint8Array(16))).toString("hex");
    if (this.holder(shardNumber, role) !== null) return null;
    shard.epoch += 1;
    const token = `${shard.epoch}-${bits}`;
    shard.leases.set(role, { value: token, expiresMs: this.clock.nowMs() + ttlMs });
    return { shard: shardNumber, role, token };
  }

  renewNow(lease: Lease, ttlMs: number): boolean {
    if (!this.holds(lease, lease.role)) return false;
    const expiresMs = this.clock.nowMs() + ttlMs;
    this.shard(lease.shard).leases.set(lease.role, { value: lease.token, expiresMs });
    return true;
  }

  releaseNow(lease: Lease): void {
    if (this.holds(lease, lease.role)) this.shard(lease.shard).leases.delete(lease.role);
  }

  heartbeatNow(role: LeaseRole, owner: string, ttlMs: number): number {
    this.living(role).set(owner, this.clock.nowMs() + ttlMs);
    return this.living(role).size;
  }

  resignNow(role: LeaseRole, owner: string): void {
    this.living(role).delete(owner);
  }

  pullNow(lease: Lease, request: PullRequest): PullResult | Fenced {
    if (!this.holds(lease, "dispatcher")) return FENCED;
    return pull(this.shard(lease.shard), request, this.clock.nowMs());
  }

  settleNow(lease: Lease, settlements: readonly Settlement[]): "settled" | Fenced {
    // Who has lost the lease has handed them over all the same.
    remember(this.references, settlements, this.clock.nowMs());
    if (!this.holds(lease, "dispatcher")) return FENCED;
    settle(this.shard(lease.shard), settlements, this.clock.nowMs());
    return "settled";
  }

  allowNow(lease: Lease, call: AllowanceCall): number | Fenced {
    if (!this.holds(lease, "dispatcher")) return FENCED;
    return allow(this.shard(lease.shard), call, this.clock.nowMs());
  }

  jobsOfNow(references: readonly string[]): readonly (JobAddress | null)[] {
    return jobsOf(this.references, references, this.clock.nowMs());
  }

  recordNow(lease: Lease, done: RecordBatch | null): RecordBatch | null | Fenced {
    if (!this.holds(lease, "recorder")) return FENCED;
    return record(this.shard(lease.shard), { shardNumber: lease.shard, done, nowMs: this.clock.nowMs() });
  }

  onMail(listener: (shard: number) => void): () => void {
    this.mailListeners.add(listener);
    return () => this.mailListeners.delete(listener);
  }

  snapshot(): JournalSnapshot {
    return structuredClone({ shards: this.shards, members: this.members, references: this.references });
  }

  restore(snapshot: JournalSnapshot): void {
    const { shards, members, references } = structuredClone(snapshot);
    this.shards.clear();
    this.members.clear();
    this.references.clear();
    for (const [key, job] of references) this.references.set(key, job);
    for (const [number, shard] of shards) this.shards.set(number, shard);
    for (const [role, living] of members) this.members.set(role, new Map(living));
  }

  /** What it holds of a shard, to be looked at. */
  look(shard: number): ShardState {
    return this.shard(shard);
  }

  /** The token of the lease that is in force, or null. */
  holder(shardNumber: number, role: LeaseRole): string | null {
    return alive(this.shard(shardNumber).leases.get(role), this.clock.nowMs())?.value ?? null;
  }

  private holds(lease: Lease, role: LeaseRole): boolean {
    return this.holder(lease.shard, role) === lease.token;
  }

  private living(role: LeaseRole): Map<string, number> {
    const members = this.members.get(role) ?? new Map<string, number>();
    this.members.set(role, members);
    for (const [owner, untilMs] of members) if (untilMs <= this.clock.nowMs()) members.delete(owner);
    return members;
  }

  private announceMail(shard: number): void {
    for (const listener of this.mailListeners) listener(shard);
  }

  private shard(number: number): ShardState {
    const shard = this.shards.get(number) ?? emptyShard();
    this.shards.set(number, shard);
    return shard;
  }
}
