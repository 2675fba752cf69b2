import { Calamities } from "./calamities.ts";
import { Dice } from "./dice.ts";
import { Driver } from "./driver.ts";
import type { Violation } from "./promises.ts";
import { drawOptions, type RunOptions } from "./run-options.ts";
import { World, type WorldCounts } from "./world.ts";

/** The result of a seed's run. */
export interface RunResult extends WorldCounts {
  /** The same for two runs that went the same way. */
  readonly hash: string;
  readonly steps: number;
  readonly virtualMs: number;
  readonly accepted: number;
  readonly handOvers: number;
  /** Hand-overs beyond a job's first, each after a fault that allows it. */
  readonly repeats: number;
  readonly lostCalls: number;
  readonly events: number;
  /** Tenants that their operator paused. */
  readonly tenantPauses: number;
  /** Messages that their tenants moved or cancelled, or tried to. */
  readonly changes: number;
}

/** A run that broke a promise, with the command that replays it. */
export class SimulationFailure extends Error {
  override readonly name = "SimulationFailure";
  constructor(
    readonly violation: Violation,
    where: { readonly seed: number; readonly steps: number | null; readonly step: number; readonly lastLines: string },
  ) {
    const { seed, steps, step, lastLines } = where;
    const replay = `bun run simulate --seed ${seed}${steps === null ? "" : ` --steps ${steps}`}`;
    super(`seed ${seed}, step ${step}: ${violation.message}\n${lastLines}\nreplay with: ${replay}`);
  }
}

/** Runs one seed: a phase with faults (of so many steps), one without in which all must settle, and a clean end. */
export function simulate(seed: number, steps: number | null = null): RunResult {
  // Chance of its own, so that every seed draws what it drew before there were pauses.
  const ofOperator = new Dice(seed + OPERATOR_SEEDS);
  const ofRetries = new Dice(seed + RETRY_SEEDS);
  const ofBatches = new Dice(seed + BATCH_SEEDS);
  const ofSchedule = new Dice(seed + SCHEDULE_SEEDS);
  const ofFallbacks = new Dice(seed + FALLBACK_SEEDS);
  const world = new World(seed, (dice) => withRetries(withPauses(drawOptions(dice, steps), ofOperator), ofRetries));
  const driver = new Driver(world, (violation) => {
    const { clock, trace } = world;
    throw new SimulationFailure(violation, { seed, steps, step: clock.steps, lastLines: trace.lastLines(40) });
  });
  world.places.forEach((_, place) => world.start(place));
  send(world, world.drawn.jobs, world.drawn.isBurst ? 2_000 : 30_000);
  if (ofBatches.chance(1 / 6)) sendBatches(world, ofBatches);
  const calamities = createCalamities(world);
  calamities.begin();
  const { weather, healthy, tenants } = world.drawn;
  const pausable = tenants.map(({ tenantId }) => tenantId).filter((tenantId) => !healthy.has(tenantId));
  world.operator.begin(ofOperator, weather.tenantPauseEveryMs, pausable);
  if (weather.jobRetried > 0) {
    const aHouse = (dice: Dice) => world.aHouse(dice);
    world.operator.retryFailed({ dice: ofRetries, share: weather.jobRetried, aHouse });
  }
  // Tenants that are compared by the order of their accepted messages schedule none.
  if (!weather.isCalm && ofSchedule.chance(1 / 3)) {
    world.load.schedule({ dice: ofSchedule, share: ofSchedule.pick([0.2, 0.7]) });
  }
  if (!weather.isCalm && ofFallbacks.chance(1 / 3)) world.load.fallBack({ dice: ofFallbacks, share: 0.4 });
  driver.stepWhile(() => world.clock.steps < world.drawn.steps);
  calamities.end();
  // Some mail comes when the faults are over, and what they left on the wire is not.
  send(world, world.dice.between(0, 8), 10_000);
  driver.settleAndStop();

  const { clock, trace, network, provider, jobs, counts } = world;
  return {
    ...counts,
    hash: trace.hash(),
    steps: clock.steps,
    virtualMs: clock.nowMs,
    accepted: jobs.jobs.size,
    handOvers: provider.taken,
    repeats: provider.repeats,
    lostCalls: network.lostCalls,
    events: jobs.events.size,
    tenantPauses: world.operator.pauses,
    changes: world.load.changes,
  };
}

const OPERATOR_SEEDS = 0x51ee_0000;
const RETRY_SEEDS = 0x2e72_0000;
const BATCH_SEEDS = 0x3ba7_0000;
const SCHEDULE_SEEDS = 0x5c4e_0000;
const FALLBACK_SEEDS = 0xfa11_0000;

/** In a third of the runs somebody pauses tenants; never those whose waits are checked. */
function withPauses(options: RunOptions, dice: Dice): RunOptions {
  const tenantPauseEveryMs = dice.chance(1 / 3) ? dice.between(1_000, 15_000) : 0;
  return { ...options, weather: { ...options.weather, tenantPauseEveryMs } };
}

/** In a third of the runs many messages are refused, and somebody has failed jobs tried again. */
function withRetries(options: RunOptions, dice: Dice): RunOptions {
  const { weather } = options;
  if (!dice.chance(1 / 3) || weather.isCalm) return options;
  const providerPermanent = Math.max(weather.providerPermanent, 0.5);
  return { ...options, weather: { ...weather, providerPermanent, jobRetried: dice.pick([0.3, 1]) } };
}

function send({ load, dice, drawn }: World, jobs: number, withinMs: number): void {
  for (let i = 0; i < jobs; i += 1) {
    // Half of it is one tenant's, and not one of the well-behaved ones.
    const tenant = dice.chance(0.5) ? drawn.tenants[0] : dice.pick(drawn.tenants);
    if (tenant === undefined) continue;
    const recipient = dice.chance(0.5) ? `ann${dice.between(1, 5)}@example.com` : `bob${i}@example.com`;
    load.send(tenant, recipient, dice.between(0, withinMs));
  }
}

/** In a sixth of the runs tenants send batches, too; never those whose waits are checked. */
function sendBatches({ load, drawn }: World, dice: Dice): void {
  const tenants = drawn.tenants.filter(({ tenantId }) => !drawn.healthy.has(tenantId));
  const batches = dice.between(1, 20);
  for (let i = 0; i < batches && tenants.length > 0; i += 1) {
    load.sendBatch(dice.pick(tenants), dice, dice.between(0, drawn.isBurst ? 2_000 : 30_000));
  }
}

function createCalamities(world: World): Calamities {
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
    stepQueueClock: (byMs) => world.stepQueueClock(byMs),
    silence: (forMs, isForAll) => world.silence(forMs, isForAll),
    breakHalf: (forMs) => world.breakHalf(forMs),
    troubleRelay: (forMs) => world.relays.troubleOne(forMs),
    changePlan: () => world.changePlan(),
    setQueueUp: (isUp) => world.setQueueUp(isUp),
    setEventStoreUp: (isUp) => {
      world.eventStoreServer.isUp = isUp;
    },
    snapshot: () => world.state.snapshot(),
    forgetSince: (snapshot) => world.forgetSince(snapshot),
  });
}
