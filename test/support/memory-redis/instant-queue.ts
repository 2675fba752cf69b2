import { drainMicrotasks } from "bun:jsc";
import { isJobId } from "../../../src/domain/ids.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import type { LeaseRole, LeaseState } from "../../../src/domain/jobs/queue.ts";
import type { Random } from "../../../src/domain/random.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { ChannelLetters, decodeRecord } from "../../../src/engine/queue/codec.ts";
import type { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import type { Reply, Snapshot } from "./keyspace.ts";
import { MemoryConnection } from "./memory-connection.ts";
import { MemoryQueue, QUEUED_CHANNELS } from "./memory-queue.ts";
import { MemoryRedis } from "./memory-redis.ts";
import { ShardLook } from "./shard-look.ts";

export interface InstantCall {
  /** By the caller's clock; absent: by Redis'. */
  readonly callerMs?: number;
  /** An earlier try may have taken effect, or may yet. */
  readonly isRepeat?: boolean;
}

interface DueTimer {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * The queue that ships as a machine without time, chance or network of its own: every call takes effect and answers at
 * once, at the instant that Redis' clock names. `restore` forgets all that came after its snapshot, as a Redis does that
 * lost its last writes.
 */
export class InstantQueue {
  readonly server: MemoryRedis;
  private readonly queue: RedisQueue;
  private readonly letters = new ChannelLetters(QUEUED_CHANNELS);
  private readonly looks = new Map<number, ShardLook>();
  private callerMs: number | undefined;
  private losesNext = false;
  private timers: DueTimer[] = [];
  /** The time that its timers have let pass. */
  private waitedMs = 0;

  /** `nowMs`: Redis' clock. */
  constructor(nowMs: () => number, random: Random) {
    this.server = new MemoryRedis(nowMs);
    const clock = {
      nowMs: () => this.callerMs ?? nowMs(),
      monotonicMs: () => 0,
      // The earliest is due as soon as all calls wait.
      setTimer: (delayMs: number, run: () => void) => {
        const timer = { atMs: this.waitedMs + delayMs, run };
        this.timers.push(timer);
        return { cancel: () => (this.timers = this.timers.filter((each) => each !== timer)) };
      },
    };
    const isLost = () => {
      const isSo = this.losesNext;
      this.losesNext = false;
      return isSo;
    };
    this.queue = new MemoryQueue(this.server, clock, random, () => new LossyConnection(this.server, isLost));
  }

  /** The answer to a call. Throws as it rejects. */
  now<T>(call: (queue: RedisQueue) => Promise<T>, { callerMs, isRepeat = false }: InstantCall = {}): T {
    this.callerMs = callerMs;
    this.losesNext = isRepeat;
    let outcome: { readonly answer: T } | { readonly error: unknown } | null = null;
    call(this.queue).then(
      (answer) => (outcome = { answer }),
      (error: unknown) => (outcome = { error }),
    );
    drainMicrotasks();
    while (outcome === null && this.timers.length > 0) {
      this.runEarliest();
      drainMicrotasks();
    }
    return answerIn(outcome);
  }

  private runEarliest(): void {
    const earliest = this.timers.reduce((one, other) => (other.atMs < one.atMs ? other : one));
    this.timers = this.timers.filter((timer) => timer !== earliest);
    this.waitedMs = earliest.atMs;
    earliest.run();
  }

  get onJobs() {
    return this.queue.onJobs.bind(this.queue);
  }
  get onRelease() {
    return this.queue.onRelease.bind(this.queue);
  }
  get onCancel() {
    return this.queue.onCancel.bind(this.queue);
  }

  jobNow({ tenantId, shard }: TenantRef, jobId: string): JobRecord | null {
    const look = this.look(shard);
    const text = isJobId(jobId) ? look.record(jobId) : null;
    if (text === null) return null;
    const findCursor = (channel: string) => look.cursors.get(`${tenantId}/${this.letters.toLetter(channel)}`) ?? "";
    const job = decodeRecord(this.letters, jobId, text, findCursor);
    return job.tenantId === tenantId ? job : null;
  }

  snapshot(): Snapshot {
    return this.server.snapshot();
  }

  restore(snapshot: Snapshot): void {
    this.server.restore(snapshot);
  }

  /** The content of a shard, for inspection. */
  look(shard: number): ShardLook {
    const look = this.looks.get(shard) ?? new ShardLook(this.server.keys, this.letters, shard);
    this.looks.set(shard, look);
    return look;
  }

  /** The token of the lease that was granted last and not released, or null. */
  holder(shard: number, role: LeaseRole): string | null {
    return this.leaseNow(shard, role)?.token ?? null;
  }

  leaseNow(shard: number, role: LeaseRole): LeaseState | null {
    return this.look(shard).lease(role);
  }
}

function answerIn<T>(outcome: { readonly answer: T } | { readonly error: unknown } | null): T {
  if (outcome === null) throw new Error("the queue did not answer at once");
  if ("error" in outcome) throw outcome.error;
  return outcome.answer;
}

/** Loses a script's call where it is told to. */
class LossyConnection extends MemoryConnection {
  constructor(
    server: MemoryRedis,
    private readonly isLost: () => boolean,
  ) {
    super(server);
  }

  protected override async execute(name: string, args: readonly string[]): Promise<Reply> {
    if (name === "evalsha" && this.isLost()) throw new Error("the connection broke");
    return super.execute(name, args);
  }
}
