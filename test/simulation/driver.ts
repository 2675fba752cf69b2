import { engineLimits } from "../../src/engine/limits.ts";
import { auditEnd, auditState, hasLeft, isSettled } from "./audit.ts";
import type { Violation } from "./promises.ts";
import type { World } from "./world.ts";

const AUDIT_EVERY_STEPS = 250;
/** Longer than any wait that a fault can leave behind: a retry's, and a clock's that was set back. */
const SETTLE_MS_MAX = 40 * 60_000;
/** For the calls that let it go. */
const LEAVE_SLACK_MS = 60_000;
const STOP_MS_MAX = 20_000;

/** Lets a world go on, and throws the first violation as soon as it is there. */
export class Driver {
  constructor(
    private readonly world: World,
    private readonly onViolation: (violation: Violation) => never,
  ) {}

  stepWhile(goesOn: () => boolean): void {
    const { world } = this;
    while (goesOn()) {
      const went = world.step();
      if (world.clock.steps % AUDIT_EVERY_STEPS === 0) auditState(world);
      this.throwViolation();
      if (!went) return;
    }
    this.throwViolation();
  }

  advance(forMs: number): void {
    const untilMs = this.world.clock.nowMs + forMs;
    this.world.clock.at(forMs, () => {});
    this.stepWhile(() => this.world.clock.nowMs < untilMs);
  }

  /** Faults end, everything must be settled and recorded, and every process stops without leftovers. */
  settleAndStop(): void {
    const { world } = this;
    world.heal();
    // A step of the queue's clock that no owner has noticed yet moves its shard's due times by as much.
    const shards = Array.from({ length: world.drawn.shards }, (_, shard) => shard);
    const { queueChecker } = world;
    const stepsMs = Math.max(...shards.map((shard) => queueChecker.unnoticedStepsMs(shard)));
    const settleByMs = world.clock.nowMs + SETTLE_MS_MAX + stepsMs;
    do {
      this.stepWhile(() => {
        const isLate = world.clock.nowMs > settleByMs + queueChecker.scheduledBehindMs;
        world.watch.demand(!isLate, "everyJobEnds", () => whatIsLeft(world));
        return world.clock.steps % 32 !== 0 || !isSettled(world);
      });
      // A little longer, so that what was forgotten behind the last job is found, too; and an accept that its caller had
      // given up can take effect in that time.
      this.advance(world.dice.between(1_000, 3_000));
    } while (!isSettled(world));
    if (world.drawn.waitsForLeave) this.waitForLeave();
    this.stopAll();
    auditEnd(world);
    this.throwViolation();
  }

  /** Finished jobs are kept for a while, then they leave. */
  private waitForLeave(): void {
    const { world } = this;
    const byMs = world.clock.nowMs + 2 * engineLimits.jobKeptMs + LEAVE_SLACK_MS;
    this.stepWhile(() => world.clock.nowMs < byMs && (world.clock.steps % 64 !== 0 || !hasLeft(world)));
    world.watch.demand(hasLeft(world), "recordsLeave", () => "jobs that have ended are in the queue still");
  }

  private stopAll(): void {
    const { world } = this;
    let stopped = 0;
    const houses = world.places.filter((house) => house !== null);
    for (const house of houses) house.process.enter(() => void world.stop(house).then(() => (stopped += 1)), "answer");
    const byMs = world.clock.nowMs + STOP_MS_MAX;
    const isWaiting = () => stopped < houses.length || world.leaving.size > 0;
    this.stepWhile(() => isWaiting() && world.clock.nowMs < byMs);
    world.watch.demand(stopped === houses.length, "cleanEnd", () => `${houses.length - stopped} did not stop`);
  }

  private throwViolation(): void {
    const { violation } = this.world.watch;
    if (violation !== null) this.onViolation(violation);
  }
}

function whatIsLeft({ jobs, load, state, drawn }: World): string {
  const shards = Array.from({ length: drawn.shards }, (_, shard) => state.look(shard));
  const whereIs = (jobId: string) => {
    if (shards.some(({ parked }) => parked.has(jobId))) return "parked";
    return shards.some(({ waiting }) => waiting.includes(jobId)) ? "in its tenant queue" : "nowhere";
  };
  const unfinished = [...jobs.jobs.values()].filter(({ status }) => status === "pending" || status === "running");
  const names = unfinished.slice(0, 3).map(({ jobId, status }) => `${jobId} ${status} ${whereIs(jobId)}`);
  const outboxes = shards.map(({ outbox }) => outbox.length).join(" ");
  return `unfinished: ${names.join(", ")}; sends in flight: ${load.inFlight}; outboxes: ${outboxes}`;
}
