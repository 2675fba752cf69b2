import type { EventType } from "./event.ts";
import { isFinal, type JobRecord } from "./job.ts";

/** Of one send. */
export const FALLBACKS_MAX = 3;

/** What a tenant may wait for, from weakest to strongest; `read` (chat) and `opened` (e-mail) are equally strong. */
export const AWAITED = ["sent", "delivered", "read", "opened", "clicked"] as const;
export type Awaited = (typeof AWAITED)[number];

/** What makes a job a fallback: it is sent only if another message was not received by its time. */
export interface Fallback {
  /** The message that comes first. */
  readonly mainJobId: string;
  /** Its place among the fallbacks of that message, from 1. */
  readonly number: number;
  /** How long after the message it is due. */
  readonly afterMs: number;
  /** It is not needed once the message, or an earlier fallback of it, has one of these events, or a stronger one. */
  readonly unless: readonly Awaited[];
}

const [MIDDLE_AT, MIDDLE_END] = [24, 28];
/** Odd: its multiples differ in 16 bits. */
const STEP = 0x5a5b;

/**
 * The id of a message's fallback. It differs from the message's in bits that no id of the same batch differs in (`idInBatch`), so
 * whoever knows the message finds its fallbacks.
 */
export function fallbackId(mainJobId: string, number: number): string {
  const middle = Number.parseInt(mainJobId.slice(MIDDLE_AT, MIDDLE_END), 16) ^ ((number * STEP) & 0xffff);
  return mainJobId.slice(0, MIDDLE_AT) + middle.toString(16).padStart(4, "0") + mainJobId.slice(MIDDLE_END);
}

/** The ids of all fallbacks that a message can have. */
export function fallbackIds(mainJobId: string): readonly string[] {
  return Array.from({ length: FALLBACKS_MAX }, (_, at) => fallbackId(mainJobId, at + 1));
}

/** The message and its fallbacks before this one, in their order. */
export function jobsBefore({ mainJobId, number }: Fallback): readonly string[] {
  return [mainJobId, ...fallbackIds(mainJobId).slice(0, number - 1)];
}

/** As the queue has it: `<message's job id>,<number>,<ms>,<event>+<event>`. */
export function encodeFallback({ mainJobId, number, afterMs, unless }: Fallback): string {
  return `${mainJobId},${number},${afterMs},${unless.join("+")}`;
}

export function decodeFallback(text: string): Fallback {
  const [mainJobId = "", number = "", afterMs = "", unless = ""] = text.split(",");
  const words = unless.split("+");
  return {
    mainJobId,
    number: Number(number),
    afterMs: Number(afterMs),
    unless: AWAITED.filter((word) => words.includes(word)),
  };
}

const STRENGTH: Readonly<Record<Awaited, number>> = { sent: 0, delivered: 1, read: 2, opened: 2, clicked: 3 };

/** Whether the message's history has one of the events, or a stronger one. */
export function wasReceived({ events, began = 0 }: JobRecord, unless: readonly Awaited[]): boolean {
  const least = Math.min(...unless.map((word) => STRENGTH[word]));
  // Of copies to other recipients nothing follows for the one that the message is for.
  const own = events.filter(({ eventId, result }) => eventId > began && result["recipient"] === undefined);
  const cameBack = own.some(({ type }) => type === "bounced" || type === "failed");
  return own.some(({ type }) => {
    const strength = strengthOf(type);
    return strength >= least && (strength >= STRENGTH.read || !cameBack);
  });
}

function strengthOf(type: EventType): number {
  const word = AWAITED.find((each) => each === type);
  return word === undefined ? -1 : STRENGTH[word];
}

/** What becomes of a fallback at its turn. */
export type FallbackTurn =
  | { readonly kind: "send" }
  | { readonly kind: "end"; readonly reason: "not_needed" | "canceled" | "erased" }
  /** `ms`: until it is worth another look. */
  | { readonly kind: "wait"; readonly ms: number };

/** How long a fallback waits for the message's end: a message that is still tried then goes out late, if at all. */
export const UNFINISHED_MS_MAX = 60 * 60 * 1000;
const LOOK_MS = 30_000;

export interface FallbackMoment {
  readonly fallback: Fallback;
  /** Of the jobs that `jobsBefore` names; null: there is none. */
  readonly before: readonly (JobRecord | null)[];
  /** When the fallback was due (unix ms). */
  readonly dueMs: number;
  readonly nowMs: number;
}

/**
 * F1. Nothing is sent that nobody was told of: a fallback whose message was never accepted ends.
 * F2. A message that was received, cancelled or erased has no fallback.
 * F3. A message that waits for its time, which may have been moved, is given all of its time.
 * F4. A message that is still being tried is waited for, but not for longer than `UNFINISHED_MS_MAX`.
 */
export function turnOf({ fallback, before, dueMs, nowMs }: FallbackMoment): FallbackTurn {
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
