import type { Clock } from "../../domain/clock.ts";
import { remember } from "../../domain/remember.ts";

/** A step of slowness: how many messages go at once, and how far apart they start. */
interface Step {
  readonly atOnce: number;
  readonly spacingMs: number;
}

/** From hardly to very slow. Fewer at once first, then one at a time and ever farther apart. */
const STEPS: readonly Step[] = [
  ...[8, 4, 2, 1].map((atOnce) => ({ atOnce, spacingMs: 0 })),
  ...[1, 2, 4, 8, 16, 32, 64, 128, 256].map((seconds) => ({ atOnce: 1, spacingMs: seconds * 1000 })),
];

/** Acceptances in a row that make it faster again by one step: fewer where each takes long. */
const GROW_AT_ONCE = 10;
const GROW_SPACED = 3;

/**
 * A refusal weighs as much as so many acceptances, and slows a destination once so many weigh on it within a minute. A few
 * greylisted messages are nothing that a slower pace would help, nor is one refusal in five of a busy destination.
 */
const REFUSAL_WEIGHT = 4;
const SLOWING_WEIGHT = 16 * REFUSAL_WEIGHT;
const WATCH_MS = 60_000;

/** A destination is forgotten this long after its last refusal. */
const FORGOTTEN_MS = 60 * 60_000;
const DESTINATIONS_MAX = 10_000;

/** Nobody is told to come back later than this: it may be faster again by then. */
const WAIT_MS_MAX = 5 * 60_000;
/** Apart from each other, messages that wait for a place come back so often in all while some go at once. */
const WAIT_AT_ONCE_MS = 500;

/** How a destination answered a message. `other`: nothing that tells of its pace. */
export type DestinationAnswer = "accepted" | "refused" | "other";

/** A message on its way; `ended` is called once, whatever becomes of it. */
export interface Passage {
  ended(answer: DestinationAnswer): void;
}

export type Entry =
  | { readonly kind: "go"; readonly passage: Passage }
  /** Its turn has not come; what is told to wait comes back spread over time. */
  | { readonly kind: "wait"; readonly afterMs: number };

/**
 * How fast each destination takes mail: slower where it asks for that, faster again where it accepts. Destinations that
 * never asked cost nothing.
 *
 * Invariants:
 * S1. Only what a destination answered changes its pace, and no other's.
 * S2. However many messages were under way when it refused, it becomes slower by one step: what started at the old pace
 *     says nothing of the new one.
 * S3. At most `DESTINATIONS_MAX` are remembered, those that refused last, and none for longer than `FORGOTTEN_MS`.
 */
export class DestinationPace {
  /** In the order of their last refusals, the oldest first. */
  private readonly destinations = new Map<string, Destination>();

  constructor(private readonly clock: Clock) {}

  /** A message is to go to a destination, whose name is whatever tells it from others. */
  enter(name: string): Entry {
    const nowMs = this.clock.monotonicMs();
    const known = this.recall(name, nowMs);
    const step = known === null ? undefined : STEPS[known.level];
    if (known === null || step === undefined) return { kind: "go", passage: { ended: (a) => this.watch(name, a) } };
    const nextMs = known.startedMs + step.spacingMs;
    if (known.inFlight >= step.atOnce || nowMs < nextMs) return { kind: "wait", afterMs: waitOf(known, step, nowMs) };
    known.inFlight += 1;
    known.startedMs = nowMs;
    const { round } = known;
    return { kind: "go", passage: { ended: (answer) => this.end(name, known, { round, answer }) } };
  }

  /** How many destinations are remembered. */
  get size(): number {
    return this.destinations.size;
  }

  /** A message ended that went at full speed. */
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

  /** A message ended that was let through to a slowed destination. */
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
  /** Since the level changed. */
  accepted: number;
  inFlight: number;
  startedMs: number;
  /** When the last of those that wait is to come back. */
  lineEndMs: number;
  refusedMs: number;
  watchedFromMs: number;
  /** Of its refusals, while it is watched. */
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

/** Each that has to wait comes back behind the one before it, so that none comes for nothing again and again. */
function waitOf(destination: Destination, { atOnce, spacingMs }: Step, nowMs: number): number {
  const apartMs = spacingMs > 0 ? spacingMs : WAIT_AT_ONCE_MS / atOnce;
  const dueMs = Math.max(destination.startedMs + apartMs, destination.lineEndMs + apartMs, nowMs + 1);
  destination.lineEndMs = Math.min(dueMs, nowMs + WAIT_MS_MAX);
  return Math.ceil(destination.lineEndMs - nowMs);
}
