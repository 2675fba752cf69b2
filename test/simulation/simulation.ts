import { auditBooks, auditEnd, isSettled } from "./audit.ts";
import { Calamities } from "./calamities.ts";
import { Violation } from "./promises.ts";
import { drawOptions } from "./run-options.ts";
import { World } from "./world.ts";

/** What a seed's run came to. */
export interface RunResult {
  readonly seed: number;
  readonly hash: string;
  readonly steps: number;
  readonly virtualMs: number;
  readonly accepted: number;
  readonly taken: number;
  readonly repeats: number;
  readonly lostCalls: number;
  readonly events: number;
  readonly crashes: number;
  readonly pauses: number;
  readonly drains: number;
  readonly restarts: number;
  readonly reports: number;
}

/** A run that broke a promise, with all that it takes to look into it. */
export class SimulationFailure extends Error {
  override readonly name = "SimulationFailure";
  constructor(
    readonly seed: number,
    readonly step: number,
    readonly violation: Violation,
    readonly lastLines: string,
  ) {
    super(
      `seed ${seed}, step ${step}: ${violation.message}\nreplay with: bun run simulate --seed ${seed}\n${lastLines}`,
    );
  }
}

const AUDIT_EVERY_STEPS = 250;
/** Longer than any wait that a fault can leave behind: a retry's, and a clock's that was set back. */
const SETTLE_MS_MAX = 40 * 60_000;
const STOP_MS_MAX = 20_000;

/** Runs one seed: a phase with faults, one without in which everything must settle, and a clean end. */
export function simulate(seed: number, steps: number | null = null): RunResult {
  const world = new World(seed, (dice) => drawOptions(dice, steps));
  const run = new Run(seed, world);
  run.play();
  const { clock, trace, network, provider, jobs, counts } = world;
  return {
    seed,
    hash: trace.hash(),
    steps: clock.steps,
    virtualMs: clock.nowMs,
    accepted: jobs.jobs.size,
    taken: provider.taken,
    repeats: provider.repeats,
    lostCalls: network.lostCalls,
    events: jobs.events.size,
    ...counts,
  };
}

class Run {
  constructor(
    private readonly seed: number,
    private readonly world: World,
  ) {}

  play(): void {
    const { world } = this;
    const { dice, drawn } = world;
    const calamities = this.calamities();
    world.places.forEach((_, place) => world.start(place));
    this.sendAll();
    calamities.begin();
    this.stepWhile(() => world.clock.steps < drawn.steps);
    calamities.end();
    world.heal();
    const settleByMs = world.clock.nowMs + SETTLE_MS_MAX;
    this.stepWhile(() => {
      const isLate = world.clock.nowMs > settleByMs;
      world.watch.demand(!isLate, "everyJobEnds", () => this.whatIsLeft());
      return world.clock.steps % 32 !== 0 || !isSettled(world);
    });
    // Once more round, so that what was forgotten behind the last job is found, too.
    const restUntilMs = world.clock.nowMs + dice.between(1_000, 3_000);
    this.stepWhile(() => world.clock.nowMs < restUntilMs);
    this.stopAll();
    auditEnd(world);
    this.throwViolation();
  }

  private stepWhile(goesOn: () => boolean): void {
    const { world } = this;
    while (goesOn()) {
      const went = world.step();
      if (world.clock.steps % AUDIT_EVERY_STEPS === 0) auditBooks(world);
      this.throwViolation();
      if (!went) return;
    }
    this.throwViolation();
  }

  private stopAll(): void {
    const { world } = this;
    let stopped = 0;
    const houses = world.places.filter((house) => house !== null);
    for (const house of houses) house.process.enter(() => void world.stop(house).then(() => (stopped += 1)), "answer");
    const byMs = world.clock.nowMs + STOP_MS_MAX;
    this.stepWhile(() => stopped < houses.length && world.clock.nowMs < byMs);
    world.watch.demand(stopped === houses.length, "cleanEnd", () => `${houses.length - stopped} did not stop`);
  }

  private sendAll(): void {
    const { load, dice, drawn } = this.world;
    const tenants = drawn.tenants;
    for (let i = 0; i < drawn.jobs; i += 1) {
      // Half of it is one tenant's.
      const tenant = dice.chance(0.5) ? tenants[0] : dice.pick(tenants);
      if (tenant === undefined) continue;
      const recipient = dice.chance(0.5) ? `ann${dice.between(1, 5)}@example.com` : `bob${i}@example.com`;
      load.send(tenant, recipient, drawn.isBurst ? dice.between(0, 2_000) : dice.between(0, 30_000));
    }
  }

  private calamities(): Calamities {
    const { world } = this;
    const { places, dice, clock, drawn } = world;
    const aPlace = () => dice.between(0, places.length - 1);
    return new Calamities({
      clock,
      dice: dice.fork(),
      weather: drawn.weather,
      drainOne: () => world.drain(aPlace()),
      stepClockOfOne: (byMs) => {
        const house = places[aPlace()];
        if (house) house.process.skewMs += byMs;
      },
      stepJournalClock: (byMs) => world.stepJournalClock(byMs),
      setJournalUp: (isUp) => world.setJournalUp(isUp),
      setLedgerUp: (isUp) => {
        world.ledgerServer.isUp = isUp;
      },
      snapshot: () => world.state.snapshot(),
      forgetSince: (snapshot) => world.forgetSince(snapshot),
    });
  }

  private whatIsLeft(): string {
    const { jobs, load, state, drawn } = this.world;
    const statuses = [...jobs.jobs.values()].filter(({ status }) => status === "pending" || status === "running");
    const outboxes = Array.from({ length: drawn.shards }, (_, shard) => state.look(shard).outbox.entries.size);
    const names = statuses.slice(0, 3).map(({ jobId, status }) => `${jobId} ${status}`);
    return `unfinished: ${names.join(", ")}; sends ${load.underWay}; outboxes ${outboxes.join(" ")}`;
  }

  private throwViolation(): void {
    const { watch, clock, trace } = this.world;
    if (watch.violation !== null)
      throw new SimulationFailure(this.seed, clock.steps, watch.violation, trace.lastLines(30));
  }
}
