import type { Clock } from "../../../domain/clock.ts";
import { remember } from "../../../domain/remember.ts";

/** A level of slowness: how many messages go at once, and how far apart they start. */
interface Step {
  readonly atOnce: number;
  readonly spacingMs: number;
}

/** From hardly slowed to very slow: first fewer at once, then one at a time at growing intervals. */
const STEPS: readonly Step[] = [
  ...[8, 4, 2, 1].map((atOnce) => ({ atOnce, spacingMs: 0 })),
  ...[1, 2, 4, 8, 16, 32, 64, 128, 256].map((seconds) => ({ atOnce: 1, spacingMs: seconds * 1000 })),
];

/** Consecutive acceptances that speed a destination up by one level: fewer where each takes long. */
const GROW_AT_ONCE = 10;
const GROW_SPACED = 3;

/**
 * One refusal counts as much as this many acceptances, and a destination is slowed once refusals reach this weight within a
 * minute. A slower pace helps neither a few greylisted messages nor one refusal in five of a busy destination.
 */
const REFUSAL_WEIGHT = 4;
const SLOWING_WEIGHT = 16 * REFUSAL_WEIGHT;
const WATCH_MS = 60_000;

/** A destination is forgotten this long after its last refusal. */
const FORGOTTEN_MS = 60 * 60_000;
const DESTINATIONS_MAX = 10_000;

/** The longest wait before a message is tried again, because the destination may be faster by then. */
const WAIT_MS_MAX = 5 * 60_000;
/** Waiting messages come back spread over time, together at this rate, while some are sent at once. */
const WAIT_AT_ONCE_MS = 500;

/** A destination's answer to a message. `other`: the answer is unrelated to its pace. */
export type DestinationAnswer = "accepted" | "refused" | "other";

/** A message being sent; `ended` is called once, whatever its outcome. */
export interface Passage {
  ended(answer: DestinationAnswer): void;
}

export type Entry =
  | { readonly kind: "go"; readonly passage: Passage }
  /** The message must wait; waiting messages come back spread over time. */
  | { readonly kind: "wait"; readonly afterMs: number };

/**
 * Paces mail to each destination: slower if it asks for that, faster again as it accepts. Destinations that never asked
 * take no memory.
 *
 * Invariants:
 * S1. A destination's pace changes only by its own answers.
 * S2. However many messages were in flight when it refused, it slows down by one level: results of messages started at
 *     the old pace do not count.
 * S3. At most `DESTINATIONS_MAX` are remembered, those that refused last, and none for longer than `FORGOTTEN_MS`.
 */
export class DestinationPace {
  /** Ordered by last refusal, oldest first. */
  private readonly destinations = new Map<string, Destination>();

  constructor(private readonly clock: Clock) {}

  /** Registers a message to a destination. The name may be anything that identifies the destination. */
  enter(name: string): Entry {
    const nowMs = this.clock.monotonicMs();
    const known = this.recall(name, nowMs);
    const step = known === null ? undefined : STEPS[known.level];
    if (known === null || step === undefined) return { kind: "go", passage: { ended: (a) => this.watch(name, a) } };
    const nextMs = known.startedMs + step.spacingMs;
    if (known.inFlight >= step.atOnce || nowMs < nextMs)
      return { kind: "wait", afterMs: computeWaitMs(known, step, nowMs) };
    known.inFlight += 1;
    known.startedMs = nowMs;
    const { round } = known;
    return { kind: "go", passage: { ended: (answer) => this.end(name, known, { round, answer }) } };
  }

  /** How many destinations are remembered. */
  get size(): number {
    return this.destinations.size;
  }

  /** Handles the end of a message that was sent at full speed. */
  private watch(name: string, answer: DestinationAnswer): void {
    const nowMs = this.clock.monotonicMs();
    const known = this.recall(name, nowMs);
    if (answer === "other" || (answer === "accepted" && known === null)) return;
    const destination = known ?? newDestination(nowMs);
    if (answer === "refused") this.remember(name, destination, nowMs);
    // Slowed since this message started.
    if (destination.level >= 0) return;
    if (nowMs - destination.watchedFromMs > WATCH_MS) {
      destination.watchedFromMs = nowMs;
      destination.weight = 0;
    }
    destination.weight = Math.max(0, destination.weight + (answer === "refused" ? REFUSAL_WEIGHT : -1));
    if (destination.weight >= SLOWING_WEIGHT) moveTo(destination, 0);
  }

  /** Handles the end of a message to a slowed destination. */
  private end(name: string, known: Destination, { round, answer }: { round: number; answer: DestinationAnswer }): void {
    known.inFlight -= 1;
    if (answer === "refused") this.remember(name, known, this.clock.monotonicMs());
    if (round !== known.round || answer === "other") return;
    if (answer === "refused") return moveTo(known, Math.min(known.level + 1, STEPS.length - 1));
    known.accepted += 1;
    const enough = STEPS[known.level]?.spacingMs === 0 ? GROW_AT_ONCE : GROW_SPACED;
    if (known.accepted < enough) return;
    moveTo(known, known.level - 1);
    if (known.level < 0 && this.destinations.get(name) === known) this.destinations.delete(name);
  }

  private recall(name: string, nowMs: number): Destination | null {
    const known = this.destinations.get(name);
    if (known === undefined) return null;
    if (nowMs - known.refusedMs <= FORGOTTEN_MS) return known;
    this.destinations.delete(name);
    return null;
  }

  private remember(name: string, destination: Destination, nowMs: number): void {
    destination.refusedMs = nowMs;
    remember(this.destinations, { key: name, value: destination, max: DESTINATIONS_MAX });
  }
}

interface Destination {
  /** Index into `STEPS`; -1 while it is only watched. */
  level: number;
  /** Counts changes of the level. */
  round: number;
  /** Counted since the level changed. */
  accepted: number;
  inFlight: number;
  startedMs: number;
  /** When the last waiting message is due to return. */
  lineEndMs: number;
  refusedMs: number;
  watchedFromMs: number;
  /** Times of its refusals, while it is watched. */
  weight: number;
}

function newDestination(nowMs: number): Destination {
  const never = Number.NEGATIVE_INFINITY;
  return {
    level: -1,
    round: 0,
    accepted: 0,
    inFlight: 0,
    startedMs: never,
    lineEndMs: never,
    refusedMs: nowMs,
    watchedFromMs: nowMs,
    weight: 0,
  };
}

function moveTo(destination: Destination, level: number): void {
  destination.level = level;
  destination.round += 1;
  destination.accepted = 0;
  destination.weight = 0;
}

/** Computes the wait. Each waiting message comes back after the one before it, so none returns in vain repeatedly. */
function computeWaitMs(destination: Destination, { atOnce, spacingMs }: Step, nowMs: number): number {
  const apartMs = spacingMs > 0 ? spacingMs : WAIT_AT_ONCE_MS / atOnce;
  const dueMs = Math.max(destination.startedMs + apartMs, destination.lineEndMs + apartMs, nowMs + 1);
  destination.lineEndMs = Math.min(dueMs, nowMs + WAIT_MS_MAX);
  return Math.ceil(destination.lineEndMs - nowMs);
}
