import { expect } from "bun:test";
import { assert } from "../../src/core/errors.ts";
import { firstEventIdAt } from "../../src/core/event.ts";
import { JobIds, jobTimeMs } from "../../src/core/ids.ts";
import type { ChannelName, JobRecord, QueuedJob } from "../../src/core/job.ts";
import {
  FENCED,
  type Lease,
  type LeaseRole,
  type NewJob,
  type Observation,
  type RecordBatch,
  type Settlement,
} from "../../src/core/journal.ts";
import type { TenantRef } from "../../src/core/tenant.ts";
import { utcDayAt } from "../../src/core/warm-up.ts";
import { MemoryJournal } from "../simulation/memory-journal.ts";
import { JournalState } from "../simulation/memory-journal-state.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import type { AllowancePick, BoxPick, Command, LeasePick, Order, OutcomePick, Report } from "./journal-commands.ts";
import { REFERENCES, SHARDS, TENANTS } from "./journal-commands.ts";
import { comparableDump, journalTexts } from "./journal-texts.ts";
import type { TimedRedis } from "./timed-redis.ts";

const START_MS = Date.UTC(2026, 0, 15);
const NO_LEASE = "0-nobody";

/**
 * A journal in memory and one on Redis that are asked the same. Every answer must be equal, to the letter; after every
 * command everything that they hold, and all that they say of their jobs.
 */
export class JournalPair {
  private nowMs = START_MS;
  private readonly memory: JournalState;
  private readonly port: MemoryJournal;
  private readonly mail = new Set<number>();
  private readonly chance = new SeededRandom(7);
  private readonly jobs: { readonly tenant: TenantRef; readonly job: NewJob }[] = [];
  private readonly pulled: { readonly shard: number; readonly job: QueuedJob }[] = [];
  private readonly taken = new Map<string, number>();
  private readonly lastRead = new Map<string, string>();
  private readonly leases = new Map<string, Lease[]>();
  private readonly batches = new Map<number, RecordBatch[]>();

  private constructor(
    private readonly redis: TimedRedis,
    tokenChance: SeededRandom,
  ) {
    this.memory = new JournalState({ nowMs: () => this.nowMs }, tokenChance);
    this.port = new MemoryJournal(this.memory);
    this.port.onMail((shard) => this.mail.add(shard));
  }

  /** Two empty journals whose tokens will be the same, if the random numbers are, and a lease of everything. */
  static async start(redis: TimedRedis, tokenChance: SeededRandom): Promise<JournalPair> {
    await redis.reset(START_MS);
    const pair = new JournalPair(redis, tokenChance);
    for (const shard of SHARDS) {
      await pair.acquire(shard, "dispatcher", 3_600_000);
      await pair.acquire(shard, "recorder", 3_600_000);
    }
    return pair;
  }

  async run(command: Command): Promise<void> {
    if (command.kind === "wait") {
      // What expires is seen, here and there, by the next call only: until then the clock may be set back.
      this.nowMs += command.ms;
      return this.redis.setTime(this.nowMs);
    }
    await this.redis.expire();
    await this.perform(command);
    expect(await this.redis.mailHeard()).toEqual([...this.mail].toSorted((a, b) => a - b));
    this.mail.clear();
    const held = comparableDump(await this.redis.dump());
    const expected = journalTexts(this.memory.snapshot(), this.nowMs);
    const differing = Object.keys({ ...held, ...expected }).filter((key) => !Bun.deepEquals(held[key], expected[key]));
    expect(differing.map((key) => [key, held[key]])).toEqual(differing.map((key) => [key, expected[key]]));
    const told = await Promise.all(this.jobs.map(({ tenant, job }) => this.redis.journal.job(tenant, job.jobId)));
    expect(await this.redis.journal.jobsOf(REFERENCES)).toEqual(await this.port.jobsOf(REFERENCES));
    const expectedJobs = this.jobs.map(({ tenant, job }) => this.port.job(tenant, job.jobId));
    expect(told).toEqual(await Promise.all(expectedJobs));
  }

  private async perform(command: Exclude<Command, { kind: "wait" }>): Promise<void> {
    const { journal } = this.redis;
    switch (command.kind) {
      case "accept":
        return this.accept(command.limit, command.orders);
      case "accept lost":
        return this.acceptLost(command.limit, command.order, command.way);
      case "admit": {
        const tenant = tenantAt(command.tenant);
        expect(await journal.admit(tenant, command.limit)).toEqual(await this.port.admit(tenant, command.limit));
        return;
      }
      case "pull":
        return this.pull(command.lease, command.survey, command.boxes);
      case "settle":
        return this.settle(command.lease, command.outcomes);
      case "observe":
        return this.observe(command.reports);
      case "record":
        return this.record(command.lease, command.done);
      case "acquire":
        return this.acquire(command.shard, command.role, command.ttlMs);
      case "renew": {
        const lease = this.lease(command.lease, command.role);
        expect(await journal.renew(lease, 3_600_000)).toBe(await this.port.renew(lease, 3_600_000));
        return;
      }
      case "release": {
        const lease = this.lease(command.lease, command.role);
        await journal.release(lease);
        await this.port.release(lease);
        return;
      }
      case "allow":
        return this.allow(command.lease, command.call);
      case "drain":
        return this.drain(command.shard);
      case "member":
        return this.member(command.role, command.owner, command.leaves);
    }
  }

  /** Asked at one time: the first goes out alone, the others in one call. */
  private async accept(limit: number | null, orders: readonly Order[]): Promise<void> {
    const requests = orders.map((order) => this.jobOf(order));
    const answers = requests.map(({ tenant, job }) => this.redis.journal.accept(tenant, limit, job));
    const expected = requests.map(({ tenant, job }) => this.memory.acceptNow(tenant, limit, job));
    expect(await Promise.all(answers)).toEqual(expected);
  }

  private async acceptLost(limit: number | null, order: Order, way: "there" | "back"): Promise<void> {
    const { tenant, job } = this.jobOf(order);
    if (way === "back") this.memory.acceptNow(tenant, limit, job);
    const expected = this.memory.acceptNow(tenant, limit, job, true);
    const acceptor = this.redis.acceptorThatLoses(way);
    expect(await acceptor.submit({ tenant, requestsPerMinute: limit, job })).toEqual(expected);
  }

  private jobOf({ tenant: at, channel, recipient, payload, ageMs, needsScreening, template, idempotency }: Order) {
    const tenant = tenantAt(at);
    const screening = needsScreening ? ({ needsScreening: true } as const) : {};
    const special = { ...screening, ...(template !== null && { template }) };
    const job = { jobId: this.newJobId(this.madeMs(ageMs)), channel, recipient, payload, idempotency, ...special };
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

  private async pull(pick: LeasePick, survey: boolean, picks: readonly BoxPick[]): Promise<void> {
    const lease = this.lease(pick, "dispatcher");
    const boxes = picks.map(({ tenant, channel, goesOn, entriesMax }) => {
      const box = { tenantId: tenantAt(tenant).tenantId, channel };
      const after = goesOn ? (this.lastRead.get(`${box.tenantId}/${channel}`) ?? null) : null;
      return { box, after, entriesMax };
    });
    const answer = await this.redis.journal.pull(lease, { boxes, survey });
    const expected = await this.port.pull(lease, { boxes, survey });
    if (answer === FENCED || expected === FENCED) return expect(answer).toBe(expected);
    // A set names its members in no order of its own.
    const byName = (ready: readonly object[]) => ready.map((box) => JSON.stringify(box)).toSorted();
    expect({ ...answer, ready: byName(answer.ready) }).toEqual({ ...expected, ready: byName(expected.ready) });
    for (const { box, jobs } of answer.boxes) {
      for (const job of jobs) this.pulled.push({ shard: lease.shard, job });
      const last = jobs.at(-1)?.entryId;
      if (last !== undefined) this.lastRead.set(`${box.tenantId}/${box.channel}`, last);
    }
  }

  private async settle(pick: LeasePick, outcomes: readonly OutcomePick[]): Promise<void> {
    const lease = this.lease(pick, "dispatcher");
    const candidates = this.pulled.filter(({ shard }) => shard === lease.shard);
    if (candidates.length === 0) return;
    const settlements = outcomes.map((outcome): Settlement => {
      const { job } = pickFromEnd(candidates, outcome.job % candidates.length) ?? candidates[0] ?? unreachable();
      return settlementOf(job, outcome);
    });
    expect(await this.redis.journal.settle(lease, settlements)).toBe(await this.port.settle(lease, settlements));
  }

  /** Asked at one time: the first goes out alone, the others in one call. What is unknown is asked again, with the job. */
  private async observe(reports: readonly Report[]): Promise<void> {
    const sightings = reports.map((report) => this.sightingOf(report));
    const answers = await this.observeTogether(sightings);
    const again = sightings.filter((_, at) => answers[at] === "unknown" && reports[at]?.isKnownToLedger);
    const known = again.map(({ tenant, observation }) => ({
      tenant,
      observation: { ...observation, known: this.knownToLedger(tenant, observation.jobId) },
    }));
    if (known.length > 0) await this.observeTogether(known);
  }

  private async observeTogether(sightings: readonly { tenant: TenantRef; observation: Observation }[]) {
    const answers = sightings.map(({ tenant, observation }) => this.redis.journal.observe(tenant, observation));
    const expected = sightings.slice(0, 1).map((one) => this.memory.observeNow(one.tenant, one.observation));
    const others = sightings.slice(1);
    const byShard = SHARDS.map((shard) => others.filter(({ tenant }) => tenant.shard === shard));
    const told = byShard.map((some, shard) => this.memory.observeTogetherNow(shard, some));
    for (const { tenant } of others) expected.push(told[tenant.shard]?.shift() ?? "unknown");
    const results = await Promise.all(answers);
    expect(results).toEqual(expected);
    return results;
  }

  private sightingOf({ job: at, isForeign, type, url, suppresses, whenUnfinished }: Report) {
    const accepted = pickFromEnd(this.jobs, at);
    const tenant = isForeign || accepted === null ? tenantAt(1) : accepted.tenant;
    const recipient = accepted?.job.recipient ?? "ann@example.com";
    const observation: Observation = {
      jobId: accepted?.job.jobId ?? this.newJobId(this.nowMs - 50_000),
      type,
      result: url === null ? {} : { url },
      suppress: suppresses ? { recipient, reason: type === "bounced" ? "bounced" : "unsubscribed" } : null,
      known: null,
      whenUnfinished,
    };
    return { tenant, observation };
  }

  /** A job that has left the journal, as the ledger would give it. */
  private knownToLedger({ tenantId }: TenantRef, jobId: string): JobRecord {
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

  private async record(pick: LeasePick, which: "none" | "last" | "earlier"): Promise<void> {
    const lease = this.lease(pick, "recorder");
    const batches = this.batches.get(lease.shard) ?? [];
    const done = which === "none" ? null : (batches.at(which === "last" ? -1 : -2) ?? null);
    const answer = await this.redis.journal.record(lease, done);
    expect(answer).toEqual(await this.port.record(lease, done));
    if (answer !== FENCED && answer !== null) this.batches.set(lease.shard, [...batches, answer]);
  }

  private async allow(pick: LeasePick, { tenant, channel, isTomorrow, knowsMore, ...wish }: AllowancePick) {
    const lease = this.lease(pick, "dispatcher");
    const day = utcDayAt(this.nowMs) + (isTomorrow ? 1 : 0);
    const box = { tenantId: tenantAt(tenant).tenantId, channel };
    const name = `${box.tenantId}/${channel}:${day}`;
    const known = Math.max(0, (this.taken.get(name) ?? 0) + knowsMore);
    const call = { box, day, known, ...wish };
    const answer = await this.redis.journal.allow(lease, call);
    expect(answer).toBe(await this.port.allow(lease, call));
    if (answer !== FENCED) this.taken.set(name, answer);
  }

  private async drain(shard: number): Promise<void> {
    const pick = { shard, age: 0 };
    const channels: readonly ChannelName[] = ["email", "whatsapp"];
    const boxes = TENANTS.flatMap((tenant, at) =>
      channels.map((channel) => ({ shard: tenant.shard, tenant: at, channel, goesOn: false, entriesMax: 64 })),
    );
    const before = this.pulled.length;
    await this.pull(
      pick,
      true,
      boxes.filter((box) => box.shard === shard),
    );
    const outcomes = Array.from({ length: this.pulled.length - before }, (_, job) => {
      return { job, outcome: "sent", delayMs: 0, providerRef: null } as const;
    });
    if (outcomes.length > 0) await this.settle(pick, outcomes);
    for (const done of ["none", "last", "last"] as const) await this.record(pick, done);
  }

  private async acquire(shard: number, role: LeaseRole, ttlMs: number): Promise<void> {
    const answer = await this.redis.journal.acquire(shard, role, "test", ttlMs);
    expect(answer).toEqual(await this.port.acquire(shard, role, "test", ttlMs));
    const name = `${shard} ${role}`;
    if (answer !== null) this.leases.set(name, [...(this.leases.get(name) ?? []), answer]);
  }

  private lease({ shard, age }: LeasePick, role: LeaseRole): Lease {
    const known = this.leases.get(`${shard} ${role}`)?.at(-1 - age);
    return known ?? { shard, role, token: NO_LEASE };
  }

  private async member(role: LeaseRole, owner: string, leaves: boolean): Promise<void> {
    if (!leaves) {
      const alive = await this.redis.journal.heartbeat(role, owner, 20_000);
      return expect(alive).toBe(await this.port.heartbeat(role, owner, 20_000));
    }
    await this.redis.journal.resign(role, owner);
    await this.port.resign(role, owner);
  }
}

function tenantAt(at: number): TenantRef {
  return TENANTS[at] ?? TENANTS[0];
}

function pickFromEnd<T>(items: readonly T[], at: number): T | null {
  return items.at(-1 - at) ?? null;
}

function unreachable(): never {
  assert(false, "a list that is not empty has a first item");
}

function settlementOf(job: QueuedJob, { outcome, delayMs, providerRef }: OutcomePick): Settlement {
  const named = providerRef === null ? {} : { providerRef };
  switch (outcome) {
    case "retry":
      return { kind: "retry", job, delayMs, status: "running" };
    case "wait":
      return { kind: "retry", job, delayMs, status: "running", isUncounted: true };
    case "held":
      return { kind: "retry", job, delayMs, status: "pending" };
    case "start":
      return { kind: "start", job };
    case "sent":
      return { kind: "final", job, status: "success", result: {}, event: { type: "sent", result: {} }, ...named };
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
