import { type EventType, isByMachine, isByReader } from "../../domain/jobs/event.ts";
import { AWAITED, type Awaited, type Fallback } from "../../domain/jobs/fallback.ts";
import { isFinal, type JobRecord } from "../../domain/jobs/job.ts";

const STRENGTH: Readonly<Record<Awaited, number>> = { sent: 0, delivered: 1, read: 2, opened: 2, clicked: 3 };

/** Whether the message's history has one of the events, or a stronger one. */
export function wasReceived({ events, status, began = 0 }: JobRecord, unless: readonly Awaited[]): boolean {
  const least = Math.min(...unless.map((word) => STRENGTH[word]));
  // Events of copies to other recipients do not count for the recipient of the message.
  const own = events.filter(
    (event) => event.eventId > began && event.result["recipient"] === undefined && !isByMachine(event),
  );
  const cameBack = own.some(({ type }) => type === "bounced" || type === "failed");
  return own.some(({ type }) => {
    // A message that was not accepted has no readers: a gateway has followed its links.
    if (status !== "success" && isByReader(type)) return false;
    const strength = getStrength(type);
    return strength >= least && (strength >= STRENGTH.read || !cameBack);
  });
}

function getStrength(type: EventType): number {
  const word = AWAITED.find((each) => each === type);
  return word === undefined ? -1 : STRENGTH[word];
}

/** The decision about a fallback whose time has come. */
export type FallbackTurn =
  | { readonly kind: "send" }
  | { readonly kind: "end"; readonly reason: "not_needed" | "canceled" | "erased" }
  /** `ms`: milliseconds until it is worth another check. */
  | { readonly kind: "wait"; readonly ms: number };

/**
 * How long a fallback waits for the message's end: if the message is still being tried then, the fallback goes out
 * late, if at all.
 */
export const UNFINISHED_MS_MAX = 60 * 60 * 1000;
const LOOK_MS = 30_000;

export interface FallbackMoment {
  readonly fallback: Fallback;
  /** The jobs that `jobsBefore` names; null: there is no such job. */
  readonly before: readonly (JobRecord | null)[];
  /** When the fallback was due (unix ms). */
  readonly dueMs: number;
  readonly nowMs: number;
}

/**
 * Decides whether a fallback is sent.
 *
 * F1. A fallback whose message was never accepted ends: its sender got no confirmation of it.
 * F2. A message that was received, cancelled or erased has no fallback.
 * F3. A message that waits for its time, which may have been moved, is given all of its time.
 * F4. A fallback waits for a message that is still being tried, but not for longer than `UNFINISHED_MS_MAX`.
 */
export function decideFallback({ fallback, before, dueMs, nowMs }: FallbackMoment): FallbackTurn {
  const [main] = before;
  if (main === undefined || main === null) return { kind: "end", reason: "not_needed" };
  if (before.some((job) => job !== null && wasReceived(job, fallback.unless))) {
    return { kind: "end", reason: "not_needed" };
  }
  if (main.status === "suppressed") {
    const reason = main.result?.["reason"];
    if (reason === "canceled" || reason === "erased") return { kind: "end", reason };
  }
  if (main.dueMs !== undefined) return { kind: "wait", ms: Math.max(LOOK_MS, main.dueMs + fallback.afterMs - nowMs) };
  const isOpen = before.some((job) => job !== null && !isFinal(job.status));
  const leftMs = dueMs + UNFINISHED_MS_MAX - nowMs;
  return isOpen && leftMs > 0 ? { kind: "wait", ms: Math.min(LOOK_MS, leftMs) } : { kind: "send" };
}
