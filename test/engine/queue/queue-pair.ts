import { expect } from "bun:test";
import { assert } from "../../../src/domain/errors.ts";
import { JobIds, jobTimeMs } from "../../../src/domain/ids.ts";
import { firstEventIdAt, isByReader } from "../../../src/domain/jobs/event.ts";
import type { Attempt, ChannelName, JobRecord, QueuedJob } from "../../../src/domain/jobs/job.ts";
import {
  FENCED,
  type Lease,
  type LeaseRole,
  type LeaseState,
  type NewJob,
  type Observation,
  type RecordPiece,
  type RecordTurn,
  type Settlement,
} from "../../../src/domain/jobs/queue.ts";
import type { Retry } from "../../../src/domain/jobs/retry.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { utcDayAt } from "../../../src/domain/tenants/warm-up.ts";
import { MemoryQueue } from "../../simulation/memory-queue.ts";
import { QueueState } from "../../simulation/memory-queue-state.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import type {
  AllowancePick,
  Command,
  JobPick,
  LeasePick,
  Order,
  OutcomePick,
  Report,
  RetryPick,
} from "./queue-commands.ts";
import { REFERENCES, SHARDS, TENANTS } from "./queue-commands.ts";
import { comparableDump, queueTexts } from "./queue-texts.ts";
import type { TimedRedis } from "./timed-redis.ts";

const START_MS = Date.UTC(2026, 0, 15);
const NO_LEASE = "0-nobody";

type Pulling = Omit<Extract<Command, { kind: "pull" }>, "kind">;
type Recording = Omit<Extract<Command, { kind: "record" }>, "kind">;
type Settling = Omit<Extract<Command, { kind: "settle" | "settle lent" }>, "kind">;

/**
 * A queue in memory and one on Redis that are asked the same. Every answer must be equal, to the letter; after every
 * command everything that they hold, and all that they say of their jobs.
 */
export class QueuePair {
  private nowMs = START_MS;
  private readonly memory: QueueState;
  private readonly port: MemoryQueue;
  private readonly mail = new Set<number>();
  private readonly released: string[] = [];
  private readonly chance = new SeededRandom(7);
  private readonly jobs: { readonly tenant: TenantRef; readonly job: NewJob }[] = [];
  private readonly retried = new Map<string, Retry>();
  private readonly pulled: { readonly shard: number; readonly job: QueuedJob }[] = [];
  private readonly taken = new Map<string, number>();
  private readonly lastRead = new Map<string, string>();
  private readonly leases = new Map<string, Lease[]>();
  private readonly looks = new Map<string, LeaseState | null>();
  private readonly beats = new Map<string, number[]>();
  /** The shard's time by its owner's reckoning, while time has passed since it was answered. */
  private readonly reckoned = new Map<number, number>();
  private readonly estimated = new Map<number, number | null>();
  private readonly pieces = new Map<number, RecordPiece[]>();

  private constructor(
    private readonly redis: TimedRedis,
    tokenChance: SeededRandom,
  ) {
    this.memory = new QueueState({ nowMs: () => this.nowMs }, tokenChance);
    this.port = new MemoryQueue(this.memory);
    this.port.onJobs((shard) => this.mail.add(shard));
    this.port.onRelease((role, shard) => this.released.push(`${role} ${shard}`));
  }

  /** Two empty queues whose tokens will be the same, if the random numbers are, and a lease of everything. */
  static async start(redis: TimedRedis, tokenChance: SeededRandom): Promise<QueuePair> {
    await redis.reset(START_MS);
    const pair = new QueuePair(redis, tokenChance);
    for (const shard of SHARDS) {
      await pair.acquire(shard, "dispatcher", "now");
      await pair.acquire(shard, "recorder", "now");
    }
    return pair;
  }

  async run(command: Command): Promise<void> {
    if (isPassing(command)) {
      if (command.kind === "wait")
        for (const [shard, ms] of this.reckoned) this.reckoned.set(shard, ms + Math.max(0, command.ms));
      // What expires is seen, here and there, by the next call only: until then the clock may be set back.
      this.nowMs += command.ms;
      return this.redis.setTime(this.nowMs);
    }
    await this.redis.expire();
    this.memory.expire();
    await this.perform(command);
    expect(await this.redis.mailHeard()).toEqual([...this.mail].toSorted((a, b) => a - b));
    this.mail.clear();
    expect(await this.redis.releasesHeard()).toEqual(this.released.splice(0));
    const held = comparableDump(await this.redis.dump());
    const expected = queueTexts(this.memory.snapshot(), this.nowMs);
    const differing = Object.keys({ ...held, ...expected }).filter((key) => !Bun.deepEquals(held[key], expected[key]));
    expect(differing.map((key) => [key, held[key]])).toEqual(differing.map((key) => [key, expected[key]]));
    const told = await Promise.all(this.jobs.map(({ tenant, job }) => this.redis.queue.job(tenant, job.jobId)));
    expect(await this.redis.queue.findReferencedJobs(REFERENCES)).toEqual(
      await this.port.findReferencedJobs(REFERENCES),
    );
    const expectedJobs = this.jobs.map(({ tenant, job }) => this.port.job(tenant, job.jobId));
    expect(told).toEqual(await Promise.all(expectedJobs));
  }

  private async perform(command: Exclude<Command, Passing>): Promise<void> {
    const { queue } = this.redis;
    switch (command.kind) {
      case "accept":
        return this.accept(command.limit, command.orders);
      case "accept lost":
        return this.acceptLost(command.limit, command.order, command.way);
      case "accept again":
        return this.acceptAgain(command.limit, command.job);
      case "reschedule": {
        const { tenant, jobId } = this.jobAt(command.job);
        const dueMs = this.nowMs + command.inMs;
        expect(await queue.reschedule(tenant, jobId, dueMs)).toBe(await this.port.reschedule(tenant, jobId, dueMs));
        return;
      }
      case "cancel": {
        const { tenant, jobId } = this.jobAt(command.job);
        expect(await queue.cancel(tenant, jobId)).toBe(await this.port.cancel(tenant, jobId));
        return;
      }
      case "admit": {
        const tenant = tenantAt(command.tenant);
        expect(await queue.admit(tenant, command.limit)).toEqual(await this.port.admit(tenant, command.limit));
        return;
      }
      case "pull":
        return this.pull(command);
      case "look again":
        return this.lookAgain(command.lease, command.jobs);
      case "settle":
        return this.settle(command);
      case "settle lent":
        return this.settleLent(command);
      case "retry":
        return this.retry(command);
      case "observe":
        return this.observe(command.reports);
      case "record":
        return this.record(command);
      case "acquire":
        return this.acquire(command.shard, command.role, command.seen);
      case "renew": {
        const lease = this.lease(command.lease, command.role);
        expect(await queue.renew(lease)).toBe(await this.port.renew(lease));
        return;
      }
      case "release": {
        const lease = this.lease(command.lease, command.role);
        await queue.release(lease);
        await this.port.release(lease);
        return;
      }
      case "allow":
        return this.allow(command.lease, command.call);
      case "drain":
        return this.drain(command.shard);
      case "member":
        return this.member(command);
    }
  }

  private jobAt({ job: at, isForeign }: JobPick): { readonly tenant: TenantRef; readonly jobId: string } {
    const accepted = pickFromEnd(this.jobs, at);
    const tenant = isForeign || accepted === null ? tenantAt(1) : accepted.tenant;
    return { tenant, jobId: accepted?.job.jobId ?? this.newJobId(this.nowMs - 50_000) };
  }

  /** Asked at one time: the first goes out alone, the others in one call. */
  private async accept(limit: number | null, orders: readonly Order[]): Promise<void> {
    const requests = orders.map((order) => this.jobOf(order));
    const answers = requests.map(({ tenant, job }) => this.redis.queue.accept(tenant, limit, job));
    const expected = new Map(
      inTurn(requests).map((one) => [one, this.memory.acceptNow(one.tenant, limit, one.job)] as const),
    );
    expect(await Promise.all(answers)).toEqual(requests.map((one) => expected.get(one) ?? unreachable()));
  }

  private async acceptLost(limit: number | null, order: Order, way: "there" | "back"): Promise<void> {
    const { tenant, job } = this.jobOf(order);
    if (way === "back") this.memory.acceptNow(tenant, limit, job);
    const expected = this.memory.acceptNow(tenant, limit, job);
    const acceptor = this.redis.acceptorThatLoses(way);
    expect(await acceptor.submit({ tenant, requestsPerMinute: limit, job })).toEqual(expected);
  }

  private async acceptAgain(limit: number | null, at: number): Promise<void> {
    const earlier = pickFromEnd(this.jobs, at);
    if (earlier === null) return;
    const { tenant, job } = earlier;
    const acceptor = this.redis.acceptorThatLoses("there");
    const answer = await acceptor.submit({ tenant, requestsPerMinute: limit, job });
    expect(answer).toEqual(this.memory.acceptNow(tenant, limit, job));
  }

  private jobOf(order: Order) {
    const {
      channel,
      recipient,
      needsScreening,
      template,
      storedBytes,
      traceparent,
      tags,
      topic,
      dueInMs,
      quota,
      idempotency,
    } = order;
    const tenant = tenantAt(order.tenant);
    const screening = needsScreening ? ({ needsScreening: true } as const) : {};
    const stored = storedBytes === null ? null : { sha256: "ab".repeat(32), bytes: storedBytes };
    const hasExtras = stored !== null || order.payload !== "{}";
    const special = {
      ...(hasExtras && traceparent !== null && { traceparent }),
      ...(hasExtras && tags !== null && { tags }),
      ...(hasExtras && topic !== null && { topic }),
      ...(hasExtras && dueInMs !== null && { dueMs: this.nowMs + dueInMs }),
      ...screening,
      ...(template !== null && { template }),
      ...(quota !== null && { quota }),
      ...(stored !== null && { stored }),
    };
    const payload = stored === null ? order.payload : "";
    const job = {
      jobId: this.newJobId(this.madeMs(order.ageMs)),
      channel,
      recipient,
      payload,
      idempotency,
      ...special,
    };
    this.jobs.push({ tenant, job });
    return { tenant, job };
  }

  private madeMs(ageMs: Order["ageMs"]): number {
    if (typeof ageMs === "number") return this.nowMs - ageMs;
    const earlier = pickFromEnd(this.jobs, Number(ageMs.slice(3)));
    return earlier === null ? this.nowMs : jobTimeMs(earlier.job.jobId);
  }

  private newJobId(madeMs: number): string {
    const clock = { nowMs: () => madeMs, monotonicMs: () => madeMs, setTimer: () => ({ cancel: () => {} }) };
    return new JobIds(clock, this.chance).next();
  }

  private async pull({
    lease: pick,
    survey,
    tenantQueues: picks,
    bytesMax,
    reckonsMs,
    isPrompt,
  }: Pulling): Promise<void> {
    const lease = this.lease(pick, "dispatcher");
    const shardTimeMs = this.reckons(lease, reckonsMs);
    const tenantQueues = picks.map(({ tenant, channel, goesOn, ...most }) => {
      const tenantQueue = { tenantId: tenantAt(tenant).tenantId, channel };
      const after = goesOn ? (this.lastRead.get(`${tenantQueue.tenantId}/${channel}`) ?? null) : null;
      return { tenantQueue, after, ...most };
    });
    const confirmedSkewMs = isPrompt ? (this.estimated.get(lease.shard) ?? null) : null;
    const request = { tenantQueues, survey, bytesMax, shardTimeMs, confirmedSkewMs };
    const answer = await this.redis.queue.pull(lease, request);
    const expected = await this.port.pull(lease, request);
    if (answer === FENCED || expected === FENCED) return expect(answer).toBe(expected);
    // A set names its members in no order of its own.
    const byName = (ready: readonly object[]) => ready.map((tenantQueue) => JSON.stringify(tenantQueue)).toSorted();
    expect({ ...answer, ready: byName(answer.ready) }).toEqual({ ...expected, ready: byName(expected.ready) });
    this.reckoned.set(lease.shard, answer.shardTimeMs);
    this.estimated.set(lease.shard, answer.estimatedSkewMs);
    for (const { tenantQueue, jobs } of answer.tenantQueues) {
      for (const job of jobs) this.pulled.push({ shard: lease.shard, job });
      const last = jobs.at(-1)?.entryId;
      if (last !== undefined) this.lastRead.set(`${tenantQueue.tenantId}/${tenantQueue.channel}`, last);
    }
  }

  /** Asked at one time: two go out alone, the others in one call. */
  private async lookAgain(pick: LeasePick, picks: readonly number[]): Promise<void> {
    const lease = this.lease(pick, "dispatcher");
    const candidates = this.pulled.filter(({ shard }) => shard === lease.shard);
    const jobs = picks.flatMap((at) => pickFromEnd(candidates, at)?.job ?? []);
    const answers = jobs.map((job) => this.redis.queue.lookAgain(lease, job));
    expect(await Promise.all(answers)).toEqual(jobs.map((job) => this.memory.lookAgainNow(lease, job)));
  }

  private async settle({ lease: pick, outcomes, reckonsMs }: Settling): Promise<void> {
    const lease = this.lease(pick, "dispatcher");
    const settlements = this.settlements(lease, outcomes);
    if (settlements.length === 0) return;
    const shardTimeMs = this.reckons(lease, reckonsMs);
    const answer = await this.redis.queue.settle(lease, settlements, shardTimeMs);
    expect(answer).toEqual(await this.port.settle(lease, settlements, shardTimeMs));
  }

  private async settleLent({ lease: pick, outcomes, reckonsMs }: Settling): Promise<void> {
    const lease = this.lease(pick, "dispatcher");
    const settlements = this.settlements(lease, outcomes);
    const shardTimeMs = this.reckons(lease, reckonsMs);
    await this.redis.queue.settleLent(lease, settlements, shardTimeMs);
    await this.port.settleLent(lease, settlements, shardTimeMs);
  }

  /** The shard's time as estimated by an owner that is off by this much. */
  private reckons({ shard }: Lease, byMs: number | null): number | null {
    const reckoned = this.reckoned.get(shard) ?? null;
    return byMs === null || reckoned === null ? null : reckoned + byMs;
  }

  private settlements(lease: Lease, outcomes: readonly OutcomePick[]): readonly Settlement[] {
    const candidates = this.pulled.filter(({ shard }) => shard === lease.shard);
    if (candidates.length === 0) return [];
    return outcomes.map((outcome): Settlement => {
      const { job } = pickFromEnd(candidates, outcome.job % candidates.length) ?? candidates[0] ?? unreachable();
      return settlementOf(job, outcome);
    });
  }

  /** All for the tenant of the first, those of others are foreign to it. */
  private async retry({ retries: picks, quota, lost }: Extract<Command, { kind: "retry" }>): Promise<void> {
    const jobs = picks.flatMap((pick) => {
      const found = pickFromEnd(this.jobs, pick.job);
      return found === null ? [] : [{ ...found, pick }];
    });
    const [first] = jobs;
    if (first === undefined) return;
    const tenant = first.pick.isForeign ? tenantAt(1) : first.tenant;
    const here = jobs.filter((one) => one.tenant.shard === tenant.shard);
    const retries = here.map(({ job, tenant: owner, pick }) => this.retryOf(owner, job, pick));
    if (retries.length === 0) return;
    const jobIds = retries.map(({ job }) => job.jobId);
    const contents = await this.redis.queue.unrecordedContents(tenant, jobIds);
    expect(contents).toEqual(await this.port.unrecordedContents(tenant, jobIds));
    const call = { tenant, retries, atMs: this.nowMs, ...(quota !== null && { quota }) };
    if (lost === null) {
      expect(await this.redis.queue.retry(call)).toEqual(this.memory.retryNow(call));
      return;
    }
    if (lost === "back") this.memory.retryNow(call);
    const expected = this.memory.retryNow(call, true);
    expect(await this.redis.retrierThatLoses(lost).retry(call)).toEqual(expected);
  }

  private retryOf(tenant: TenantRef, job: NewJob, { isLate }: RetryPick): Retry {
    const seen = this.memory.jobNow(tenant, job.jobId);
    const failed = { ...this.knownToEventStore(tenant, job.jobId), channel: job.channel, status: "failed" } as const;
    const earlier = isLate ? this.retried.get(job.jobId) : undefined;
    const { recipient, needsScreening, template, payload, stored, tags, topic } = job;
    const content = {
      ...(tags !== undefined && { tags }),
      ...(topic !== undefined && { topic }),
      recipient,
      ...(needsScreening && { needsScreening }),
      ...(template !== undefined && { template }),
      payload,
      ...(stored !== undefined && { stored }),
      settlements: 3,
    };
    const retry = earlier ?? { job: seen ?? failed, content };
    this.retried.set(job.jobId, retry);
    return retry;
  }

  /** Asked at one time: the first goes out alone, the others in one call. What is unknown is asked again, with the job. */
  private async observe(reports: readonly Report[]): Promise<void> {
    const sightings = reports.map((report) => this.sightingOf(report));
    const answers = await this.observeTogether(sightings);
    const again = sightings.filter((_, at) => answers[at] === "unknown" && reports[at]?.isKnownToEventStore);
    const known = again.map(({ tenant, observation }) => ({
      tenant,
      observation: { ...observation, known: this.knownToEventStore(tenant, observation.jobId) },
    }));
    if (known.length > 0) await this.observeTogether(known);
  }

  private async observeTogether(sightings: readonly { tenant: TenantRef; observation: Observation }[]) {
    const answers = sightings.map(({ tenant, observation }) => this.redis.queue.observe(tenant, observation));
    const expected = sightings.slice(0, 1).map((one) => this.memory.observeNow(one.tenant, one.observation));
    const others = sightings.slice(1);
    const byShard = SHARDS.map((shard) => others.filter(({ tenant }) => tenant.shard === shard));
    const told = byShard.map((some, shard) => this.memory.observeTogetherNow(shard, some));
    for (const { tenant } of others) expected.push(told[tenant.shard]?.shift() ?? "unknown");
    const results = await Promise.all(answers);
    expect(results).toEqual(expected);
    return results;
  }

  private sightingOf({ job: at, isForeign, type, url, isByMachine, suppresses }: Report) {
    const accepted = pickFromEnd(this.jobs, at);
    const tenant = isForeign || accepted === null ? tenantAt(1) : accepted.tenant;
    const recipient = accepted?.job.recipient ?? "ann@example.com";
    const observation: Observation = {
      jobId: accepted?.job.jobId ?? this.newJobId(this.nowMs - 50_000),
      type,
      result: { ...(url !== null && { url }), ...(isByMachine && isByReader(type) && { machine: true }) },
      suppress: suppresses ? { recipient, reason: type === "bounced" ? "bounced" : "unsubscribed" } : null,
      known: null,
    };
    return { tenant, observation };
  }

  /** A job that has left the queue, as the event store would give it. */
  private knownToEventStore({ tenantId }: TenantRef, jobId: string): JobRecord {
    const sent = { eventId: firstEventIdAt(START_MS - 3_600_000), type: "sent", result: {} } as const;
    const click = { eventId: sent.eventId + 1, type: "clicked", result: { url: "https://b.test" } } as const;
    return {
      jobId,
      tenantId,
      channel: "email",
      status: "success",
      attempts: 2,
      result: { id: "r1" },
      events: [sent, click],
    };
  }

  private async record({ turns }: Recording): Promise<void> {
    const asked = turns.map(({ lease: pick, done, refuses, takes }): RecordTurn => {
      const lease = this.lease(pick, "recorder");
      const pieces = this.pieces.get(lease.shard) ?? [];
      const piece = done === "none" ? null : (pieces.at(done === "last" ? -1 : -2) ?? null);
      return { lease, done: piece, refused: refuses ? (pieces.at(-1)?.batch ?? null) : null, takes };
    });
    const answer = await this.redis.queue.record(asked);
    expect(answer).toEqual(await this.port.record(asked));
    for (const piece of answer.batches.flatMap(({ pieces }) => pieces)) {
      this.pieces.set(piece.shard, [...(this.pieces.get(piece.shard) ?? []), piece]);
    }
  }

  private async allow(pick: LeasePick, { tenant, channel, isTomorrow, knowsMore, ...wish }: AllowancePick) {
    const lease = this.lease(pick, "dispatcher");
    const day = utcDayAt(this.nowMs) + (isTomorrow ? 1 : 0);
    const tenantQueue = { tenantId: tenantAt(tenant).tenantId, channel };
    const name = `${tenantQueue.tenantId}/${channel}:${day}`;
    const known = Math.max(0, (this.taken.get(name) ?? 0) + knowsMore);
    const call = { tenantQueue, day, known, ...wish };
    const answer = await this.redis.queue.allow(lease, call);
    expect(answer).toBe(await this.port.allow(lease, call));
    if (answer !== FENCED) this.taken.set(name, answer);
  }

  private async drain(shard: number): Promise<void> {
    const pick = { shard, age: 0 };
    const channels: readonly ChannelName[] = ["email", "whatsapp"];
    const tenantQueues = TENANTS.flatMap((tenant, at) =>
      channels.map((channel) => ({
        shard: tenant.shard,
        tenant: at,
        channel,
        goesOn: false,
        entriesMax: 64,
        bytesMax: 1_000_000,
      })),
    );
    const before = this.pulled.length;
    const own = tenantQueues.filter((tenantQueue) => tenantQueue.shard === shard);
    await this.pull({
      lease: pick,
      survey: true,
      tenantQueues: own,
      bytesMax: 10_000_000,
      reckonsMs: 0,
      isPrompt: true,
    });
    const outcomes = Array.from({ length: this.pulled.length - before }, (_, job) => {
      return { job, outcome: "sent", delayMs: 0, providerRef: null } as const;
    });
    if (outcomes.length > 0) await this.settle({ lease: pick, outcomes, reckonsMs: null });
    for (const done of ["none", "last", "last"] as const) {
      await this.record({ turns: [{ lease: pick, done, refuses: false, takes: true }] });
    }
  }

  private async acquire(shard: number, role: LeaseRole, pick: "now" | "before" | "nobody"): Promise<void> {
    const name = `${shard} ${role}`;
    const look = await this.redis.queue.leases(role, SHARDS.length);
    expect(look).toEqual(await this.port.leases(role, SHARDS.length));
    const now = look[shard] ?? null;
    const seen = { now, before: this.looks.get(name) ?? null, nobody: null }[pick];
    this.looks.set(name, now);
    const answer = await this.redis.queue.acquire(shard, role, "test", seen);
    expect(answer).toEqual(await this.port.acquire(shard, role, "test", seen));
    if (answer !== null) this.leases.set(name, [...(this.leases.get(name) ?? []), answer]);
  }

  private lease({ shard, age }: LeasePick, role: LeaseRole): Lease {
    const known = this.leases.get(`${shard} ${role}`)?.at(-1 - age);
    return known ?? { shard, role, token: NO_LEASE };
  }

  private async member({ role, owner, does }: Extract<Command, { kind: "member" }>): Promise<void> {
    const told = this.beats.get(`${role} ${owner}`) ?? [];
    if (does === "beat") {
      const beats = await this.redis.queue.heartbeat(role, owner);
      expect(beats).toEqual(await this.port.heartbeat(role, owner));
      this.beats.set(`${role} ${owner}`, [...told, beats.get(owner) ?? 0]);
      return;
    }
    const beats = does === "leave" ? undefined : (told.at(does === "leave as told" ? -1 : -2) ?? 0);
    await this.redis.queue.resign(role, owner, beats);
    await this.port.resign(role, owner, beats);
  }
}

/** Time that passes. */
type Passing = Extract<Command, { kind: "wait" | "set clock" }>;

function isPassing(command: Command): command is Passing {
  return command.kind === "wait" || command.kind === "set clock";
}

function tenantAt(at: number): TenantRef {
  return TENANTS[at] ?? TENANTS[0];
}

/** The first alone, the others in one call, which takes a tenant's requests together where they have the same quota. */
function inTurn<T extends { readonly tenant: TenantRef; readonly job: NewJob }>([first, ...others]: readonly T[]): T[] {
  const groups: T[][] = [];
  for (const one of others) {
    const latest = groups.findLast(([head]) => head?.tenant.tenantId === one.tenant.tenantId);
    if (latest !== undefined && Bun.deepEquals(latest[0]?.job.quota, one.job.quota)) latest.push(one);
    else groups.push([one]);
  }
  return first === undefined ? [] : [first, ...groups.flat()];
}

function pickFromEnd<T>(items: readonly T[], at: number): T | null {
  return items.at(-1 - at) ?? null;
}

function unreachable(): never {
  assert(false, "a list that is not empty has a first item");
}

function attemptOf({ attempts }: QueuedJob, outcome: Attempt["outcome"]): Attempt {
  return { at: attempts, outcome, relay: "mx.example:25", reply: '451 4.7.1 "try" \\ later\tor not' };
}

function settlementOf(job: QueuedJob, { outcome, delayMs, providerRef }: OutcomePick): Settlement {
  const named = providerRef === null ? {} : { providerRef };
  switch (outcome) {
    case "retry":
      return { kind: "retry", job, delayMs, status: "running", attempt: attemptOf(job, "retry") };
    case "wait":
      return { kind: "retry", job, delayMs, status: "running", isUncounted: true };
    case "held":
      return { kind: "retry", job, delayMs, status: "pending" };
    case "start":
      return { kind: "start", job };
    case "lend":
      return { kind: "lend", job, forMs: delayMs };
    case "sent":
      return {
        kind: "final",
        job,
        status: "success",
        result: {},
        event: { type: "sent", result: {} },
        attempt: attemptOf(job, "sent"),
        ...named,
      };
    case "given up": {
      const result = { error: "gave up" };
      return { kind: "final", job, status: "failed", result, event: { type: "failed", result }, isGivenUp: true };
    }
    case "failed":
    case "suppressed": {
      const result = { error: "no\nsuch = user" };
      return { kind: "final", job, status: outcome, result, event: { type: outcome, result }, ...named };
    }
  }
}
