import type { Channel } from "../core/channel.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { isOutage } from "../core/errors.ts";
import type { ChannelName, QueuedJob } from "../core/job.ts";
import {
  FENCED,
  type Mailbox,
  type MailboxPull,
  type OwnerJournal,
  type PullResult,
  type Settlement,
} from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Random } from "../core/random.ts";
import type { LeaseTerm } from "../core/shard-keeper.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { Tenant, TenantDirectory } from "../core/tenant.ts";
import { type AllowanceUnit, DailyAllowances } from "./daily-allowances.ts";
import { deliver, screen } from "./deliver.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import { giveBack } from "./give-back.ts";
import { settlementOf } from "./settlement.ts";
import { Settler } from "./settler.ts";
import { TenantActor } from "./tenant-actor.ts";
import { Wakeup } from "./wakeup.ts";

export interface ShardOwnerPorts {
  readonly journal: OwnerJournal;
  readonly directory: TenantDirectory;
  readonly channels: ReadonlyMap<ChannelName, Channel>;
  readonly schedulers: ReadonlyMap<ChannelName, FairScheduler>;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Whether this process holds as many payloads as it may. */
  isBacklogFull(): boolean;
}

/**
 * The owner of a shard for one lease term: pulls its tenants' mail, lets their actors deliver it, and writes down what
 * became of it. Everything that it knows dies with the term.
 *
 * O1. No delivery starts unless the lease is surely held (a provider cannot be fenced).
 * O2. `run` ends only when nothing of the term is under way, so that a process never owns a shard twice.
 * O3. The journal is asked to name every box with mail at the start, after a pull whose answer got lost, and from time to
 *     time: such a pull may also take effect late, and then the boxes that it was told of are known to nobody.
 * O4. No job is written down as failed before its channel has given back what accepting it took.
 */
export class ShardOwner {
  private readonly actors = new Map<string, TenantActor>();
  private readonly hungry = new Set<TenantActor>();
  private readonly underWay = new Map<QueuedJob, AbortController>();
  private readonly allowances: DailyAllowances;
  private readonly settler: Settler;
  private readonly wakeup: Wakeup;
  private readonly over = new AbortController();
  /** Aborts when what is under way is to end, whether it is done or not. */
  private readonly ended = new AbortController();
  private allDelivered: (() => void) | null = null;

  constructor(
    private readonly ports: ShardOwnerPorts,
    private readonly term: LeaseTerm,
  ) {
    const { journal, clock, telemetry } = ports;
    this.wakeup = new Wakeup(clock);
    this.allowances = new DailyAllowances({ journal, lease: term.lease, clock, telemetry });
    this.settler = new Settler({
      journal,
      lease: term.lease,
      clock,
      telemetry,
      onLanded: (settlements) => {
        for (const { kind, job } of settlements) if (kind !== "start") this.actor(job)?.settled();
      },
      onFenced: () => this.lose(),
    });
    term.lost.addEventListener("abort", () => this.lose(), { once: true });
    term.closing.addEventListener("abort", () => this.wakeup.notify(), { once: true });
  }

  get backlogBytes(): number {
    let bytes = 0;
    for (const actor of this.actors.values()) bytes += actor.backlogBytes;
    return bytes;
  }

  /** The journal says that the shard has mail. */
  wake(): void {
    this.wakeup.notify();
  }

  async run(): Promise<void> {
    await this.pullUntilOver();
    for (const actor of this.actors.values()) actor.close();
    if (this.underWay.size > 0) await new Promise<void>((resolve) => (this.allDelivered = resolve));
    await this.settler.idle();
  }

  /** Ends what is under way at the providers; their outcomes are still settled. */
  abortDeliveries(): void {
    this.ended.abort();
    for (const aborter of this.underWay.values()) aborter.abort();
  }

  /** Ends the term's work at once: nothing more is waited for or written. */
  abandon(): void {
    this.lose();
    this.settler.abandon();
    this.underWay.clear();
    this.allDelivered?.();
  }

  private get isOver(): boolean {
    return this.over.signal.aborted || this.term.closing.aborted;
  }

  private lose(): void {
    this.over.abort();
    this.wakeup.notify();
    this.abortDeliveries();
  }

  /** Ends when the term closes or the lease turns out to be lost. */
  private async pullUntilOver(): Promise<void> {
    const { clock } = this.ports;
    let surveyDueMs = clock.monotonicMs();
    let retryMs = 50;
    while (!this.isOver) {
      const pulls = this.beginPulls();
      const begunMs = clock.monotonicMs();
      const survey = begunMs >= surveyDueMs;
      let result: PullResult | typeof FENCED;
      try {
        result = await this.ports.journal.pull(this.term.lease, { boxes: pulls, survey });
      } catch (error) {
        this.reportFailedPull(error);
        for (const { box } of pulls) this.actor(box)?.failPull();
        for (const { box } of pulls) this.look(this.actor(box));
        surveyDueMs = begunMs;
        await sleep(clock, retryMs, this.term.closing);
        retryMs = Math.min(2 * retryMs, limits.journalRetryMs);
        continue;
      }
      if (result === FENCED) return this.lose();
      if (survey) surveyDueMs = begunMs + limits.surveyMs;
      retryMs = 50;
      this.apply(result);
      if (!result.more && this.hungry.size === 0) {
        await this.wakeup.sleep(Math.min(result.nextDueMs ?? limits.idlePollMs, limits.idlePollMs));
      }
    }
  }

  private reportFailedPull(error: unknown): void {
    const { telemetry } = this.ports;
    const expected = isOutage(error);
    telemetry.count("journal_calls_failed", { call: "pull" });
    telemetry.log(expected ? "warn" : "error", "pulling failed and is repeated", { error: String(error) });
  }

  private beginPulls(): MailboxPull[] {
    const frugal = this.hungry.size > 0 && this.ports.isBacklogFull();
    const pulls: MailboxPull[] = [];
    for (const actor of this.hungry) {
      if (pulls.length === limits.pullBoxesMax) break;
      this.hungry.delete(actor);
      const pull = actor.beginPull(frugal);
      if (pull !== null) pulls.push(pull);
    }
    return pulls;
  }

  private apply(result: PullResult): void {
    const named = new Set(result.ready.map(keyOf));
    for (const { box, jobs, more } of result.boxes) {
      const actor = this.actor(box);
      // A box that was read in this very call needs no further look for having been named in it.
      actor?.endPull(jobs, { more, isNamed: named.delete(keyOf(box)) });
      this.look(actor);
    }
    for (const box of result.ready) {
      if (!named.has(keyOf(box))) continue;
      const actor = this.actor(box) ?? this.hire(box);
      actor?.hasMail();
      this.look(actor);
    }
  }

  private actor(box: Mailbox): TenantActor | undefined {
    return this.actors.get(keyOf(box));
  }

  /** Nobody for a channel that this process does not serve: its mail stays in the box. */
  private hire(box: Mailbox): TenantActor | undefined {
    const { directory, schedulers, clock } = this.ports;
    const scheduler = schedulers.get(box.channel);
    const channel = this.ports.channels.get(box.channel);
    if (scheduler === undefined) return undefined;
    const actor = new TenantActor({
      box,
      directory,
      scheduler,
      allowances: this.allowances,
      clock,
      mayDeliver: () => !this.isOver && this.term.isSurelyHeld(),
      paceMs: (tenant) => channel?.paceMs?.(tenant) ?? 0,
      start: (job, tenant, unit) => void this.attempt(actor, { job, tenant, unit }),
      onChange: (changed) => {
        this.look(changed);
        if (this.hungry.size > 0) this.wakeup.notify();
      },
    });
    this.actors.set(keyOf(box), actor);
    return actor;
  }

  /** Puts the actor where its state says that it belongs. */
  private look(actor: TenantActor | undefined): void {
    if (actor === undefined) return;
    if (actor.isHungry) this.hungry.add(actor);
    else if (actor.isIdle) {
      this.actors.delete(keyOf(actor.box));
      actor.close();
    }
  }

  /** Never rejects: `deliver` always ends in an outcome. */
  private async attempt(actor: TenantActor, { job, tenant, unit }: Started): Promise<void> {
    if (job.suppressed !== null) return this.settle(job, { kind: "suppressed", reason: job.suppressed });
    if (job.isReported) return this.settler.submit(retryNow(job));
    const aborter = new AbortController();
    this.underWay.set(job, aborter);
    const refused = job.needsScreening ? await screen(this.ports, job, tenant, aborter) : null;
    if (refused === null) await this.deliverAndSettle({ job, tenant, unit }, aborter);
    else {
      unit?.giveBack();
      await this.settle(job, refused, false);
    }
    this.underWay.delete(job);
    actor.delivered();
    if (this.underWay.size === 0) this.allDelivered?.();
  }

  private async deliverAndSettle({ job, tenant, unit }: Started, aborter: AbortController): Promise<void> {
    if (job.needsScreening) this.settler.submit({ kind: "start", job });
    const outcome = await deliver(this.ports, job, tenant, aborter);
    if (outcome.kind === "retry" && (outcome.isUncounted || outcome.isUnsent)) unit?.giveBack();
    await this.settle(job, outcome);
  }

  private async settle(job: QueuedJob, outcome: Outcome, wasStarted = true): Promise<void> {
    const { clock, random } = this.ports;
    const settlement = settlementOf({ job, outcome, wasStarted }, clock, random);
    const isFailure = settlement.kind === "final" && settlement.status === "failed";
    const giving = { ended: this.ended.signal, isSurelyHeld: () => this.term.isSurelyHeld() };
    if (!isFailure || (await giveBack(this.ports, job, giving))) this.settler.submit(settlement);
  }
}

/** The report that waits with the job makes a success of this; where the journal forgot the report, it is a retry. */
function retryNow(job: QueuedJob): Settlement {
  return { kind: "retry", job, delayMs: 0, status: "running", isUncounted: true };
}

/** A delivery as its actor starts it. */
interface Started {
  readonly job: QueuedJob;
  readonly tenant: Tenant | null;
  /** What it takes of the day's allowance; null: its tenant may send as it likes, or it is not sent at all. */
  readonly unit: AllowanceUnit | null;
}

/** A job names its box, too. */
function keyOf({ tenantId, channel }: Mailbox): string {
  return `${tenantId}/${channel}`;
}
