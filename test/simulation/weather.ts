import type { Dice } from "./dice.ts";

/** What goes wrong in a run, and how often. All zero is a calm day. */
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
  /** Chances at each step of a process. */
  readonly crash: number;
  readonly pause: number;
  /** Means between two of these, in ms; 0 never. */
  readonly drainEveryMs: number;
  readonly journalRestartEveryMs: number;
  readonly ledgerAwayEveryMs: number;
  readonly clockStepEveryMs: number;
  readonly journalClockStepEveryMs: number;
  /** A restarting journal forgets up to the last second of what it acknowledged. */
  readonly journalForgets: boolean;
  readonly registryAway: number;
  readonly registrySlow: number;
  /** Chances of a delivery. */
  readonly providerTransient: number;
  readonly providerPermanent: number;
  readonly providerHangs: number;
  readonly providerSilent: number;
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
  crash: 0,
  pause: 0,
  drainEveryMs: 0,
  journalRestartEveryMs: 0,
  ledgerAwayEveryMs: 0,
  clockStepEveryMs: 0,
  journalClockStepEveryMs: 0,
  journalForgets: false,
  registryAway: 0,
  registrySlow: 0,
  providerTransient: 0,
  providerPermanent: 0,
  providerHangs: 0,
  providerSilent: 0,
  report: 0.2,
  reportEarly: 0,
  reportDoubled: 0,
};

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
    crash: kind(0.004),
    pause: kind(0.004),
    drainEveryMs: kind(30_000, 5_000),
    journalRestartEveryMs: kind(40_000, 8_000),
    ledgerAwayEveryMs: kind(40_000, 8_000),
    clockStepEveryMs: kind(20_000, 2_000),
    journalClockStepEveryMs: kind(20_000, 4_000),
    journalForgets: kind(1) > 0.5,
    registryAway: kind(0.3),
    registrySlow: kind(0.5),
    providerTransient: kind(0.4),
    providerPermanent: kind(0.1),
    providerHangs: kind(0.1),
    providerSilent: kind(0.15),
    report: 0.2 + kind(0.5),
    reportEarly: kind(0.5),
    reportDoubled: kind(0.5),
  };
}
