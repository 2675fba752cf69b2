import type { Dice } from "./dice.ts";

/** The faults of a run, and how often they occur. All zero is a calm day. */
export interface Weather {
  /** No fault of any kind. */
  readonly isCalm: boolean;
  /** Chances of a call's legs. */
  readonly lostRequest: number;
  readonly lostReply: number;
  /** A request that takes effect although its caller has given it up, perhaps after the caller's repeat of it. */
  readonly lateRequest: number;
  readonly doubledRequest: number;
  readonly legMsMax: number;
  readonly lostHint: number;
  /**
   * The bytes per millisecond of a connection in each direction; 0: unlimited. This is no fault, and does not end with
   * them.
   */
  readonly bytesPerMs: number;
  /** Means between two of these, in ms; 0 never. A silence lasts up to three lease terms, for one process or for all. */
  readonly silenceEveryMs: number;
  readonly halfOpenEveryMs: number;
  /** Chances at each step of a process. */
  readonly crash: number;
  readonly pause: number;
  /** Means between two of these, in ms; 0 never. */
  readonly drainEveryMs: number;
  readonly queueRestartEveryMs: number;
  readonly eventStoreAwayEveryMs: number;
  readonly clockStepEveryMs: number;
  readonly queueClockStepEveryMs: number;
  /** A restarting queue forgets up to the last second of what it acknowledged. */
  readonly queueForgets: boolean;
  /** Processes whose wall clock is an hour, or a year, ahead from their start. */
  readonly clockFarAhead: number;
  readonly registryAway: number;
  readonly registrySlow: number;
  /** The longest that the registry takes to load tenants: requests in the meantime wait for the next load. */
  readonly tenantLoadMs: number;
  /** Mean between two changes of a plan, after which no process remembers a tenant. */
  readonly planChangeEveryMs: number;
  /** Mean between two pauses of a tenant by its operator; 0 never. This is no fault. */
  readonly tenantPauseEveryMs: number;
  /** Chance that an operator retries a job soon after it has failed. */
  readonly jobRetried: number;
  /** Chances of a delivery. */
  readonly providerTransient: number;
  readonly providerPermanent: number;
  readonly providerHangs: number;
  readonly providerSilent: number;
  /** Mean between two times that a relay gets into trouble, and how long that lasts at most. */
  readonly relayTroubleEveryMs: number;
  readonly relayTroubleMs: number;
  /** Chances of a report about a message that was taken. */
  readonly report: number;
  readonly reportEarly: number;
  readonly reportDoubled: number;
}

export const CALM: Weather = {
  isCalm: true,
  lostRequest: 0,
  lostReply: 0,
  lateRequest: 0,
  doubledRequest: 0,
  legMsMax: 3,
  lostHint: 0,
  bytesPerMs: 0,
  silenceEveryMs: 0,
  halfOpenEveryMs: 0,
  crash: 0,
  pause: 0,
  drainEveryMs: 0,
  queueRestartEveryMs: 0,
  eventStoreAwayEveryMs: 0,
  clockStepEveryMs: 0,
  queueClockStepEveryMs: 0,
  queueForgets: false,
  clockFarAhead: 0,
  registryAway: 0,
  registrySlow: 0,
  tenantLoadMs: 0,
  planChangeEveryMs: 0,
  tenantPauseEveryMs: 0,
  jobRetried: 0,
  providerTransient: 0,
  providerPermanent: 0,
  providerHangs: 0,
  providerSilent: 0,
  relayTroubleEveryMs: 0,
  relayTroubleMs: 0,
  report: 0.2,
  reportEarly: 0,
  reportDoubled: 0,
};

/**
 * Trouble of the neighbours alone: relays that hang, refuse or are slow, tenants that send much, processes that come
 * and go. Only the queue's clock has faults, and the wire has none, so no other tenant may be delayed.
 */
export function drawNeighbours(dice: Dice): Weather {
  return {
    ...CALM,
    isCalm: false,
    lostHint: dice.chance(0.3) ? dice.next() : 0,
    bytesPerMs: dice.chance(0.5) ? dice.between(1_000, 20_000) : 0,
    drainEveryMs: dice.chance(0.4) ? dice.between(10_000, 30_000) : 0,
    queueClockStepEveryMs: dice.chance(0.5) ? dice.between(4_000, 20_000) : 0,
    tenantLoadMs: dice.chance(0.5) ? dice.between(5, 500) : 0,
    planChangeEveryMs: dice.chance(0.3) ? dice.between(2_000, 20_000) : 0,
    providerTransient: dice.chance(0.3) ? 0.3 * dice.next() : 0,
    providerPermanent: dice.chance(0.3) ? 0.3 * dice.next() : 0,
    relayTroubleEveryMs: dice.between(200, 5_000),
    relayTroubleMs: dice.between(10_000, 600_000),
  };
}

/** Each kind of fault is off in half of the runs, and one run in eight has none at all. */
export function drawWeather(dice: Dice): Weather {
  const isCalm = dice.chance(1 / 8);
  const kind = (most: number, least = 0): number => {
    const value = least + dice.next() * (most - least);
    return dice.chance(0.5) && !isCalm ? value : 0;
  };
  return {
    isCalm,
    lostRequest: kind(0.15),
    lostReply: kind(0.15),
    lateRequest: kind(0.15),
    doubledRequest: kind(0.1),
    legMsMax: 3 + kind(800),
    lostHint: kind(0.95, 0.3),
    bytesPerMs: kind(4_000, 400),
    silenceEveryMs: kind(60_000, 15_000),
    halfOpenEveryMs: kind(30_000, 5_000),
    crash: kind(0.004),
    pause: kind(0.004),
    drainEveryMs: kind(30_000, 5_000),
    queueRestartEveryMs: kind(40_000, 8_000),
    eventStoreAwayEveryMs: kind(40_000, 8_000),
    clockStepEveryMs: kind(20_000, 2_000),
    queueClockStepEveryMs: kind(20_000, 4_000),
    queueForgets: kind(1) > 0.5,
    clockFarAhead: kind(0.5),
    registryAway: kind(0.3),
    registrySlow: kind(0.5),
    tenantLoadMs: kind(500, 5),
    planChangeEveryMs: kind(30_000, 2_000),
    tenantPauseEveryMs: 0,
    jobRetried: 0,
    providerTransient: kind(0.4),
    providerPermanent: kind(0.1),
    providerHangs: kind(0.1),
    providerSilent: kind(0.15),
    relayTroubleEveryMs: kind(20_000, 1_000),
    relayTroubleMs: dice.chance(0.1) ? 3_600_000 : dice.between(5_000, 240_000),
    report: 0.2 + kind(0.5),
    reportEarly: kind(0.5),
    reportDoubled: kind(0.5),
  };
}
