import { jobTimeMs } from "../ids.ts";
/** Fallbacks of one send. */
export const FALLBACKS_MAX = 3;

/**
 * The events that a tenant may wait for, from weakest to strongest; `read` (chat) and `opened` (e-mail) are equally
 * strong.
 */
export const AWAITED = ["sent", "delivered", "read", "opened", "clicked"] as const;
export type Awaited = (typeof AWAITED)[number];

/** Makes a job a fallback: it is sent only if another message was not received by its time. */
export interface Fallback {
  /** The message that comes first. */
  readonly mainJobId: string;
  /** Its position among the fallbacks of that message, from 1. */
  readonly number: number;
  /** Its delay after the message. */
  readonly afterMs: number;
  /** It is not needed once the message, or an earlier fallback, has one of these events, or a stronger one. */
  readonly unless: readonly Awaited[];
}

const [MIDDLE_AT, MIDDLE_END] = [24, 28];
/** Odd: its multiples differ in 16 bits. */
const STEP = 0x5a5b;

/**
 * Returns the id of a message's fallback. It differs from the message's id in bits that never differ within a batch
 * (`idInBatch`), so a message's id is enough to find its fallbacks.
 */
export function fallbackId(mainJobId: string, number: number): string {
  const middle = Number.parseInt(mainJobId.slice(MIDDLE_AT, MIDDLE_END), 16) ^ ((number * STEP) & 0xffff);
  return mainJobId.slice(0, MIDDLE_AT) + middle.toString(16).padStart(4, "0") + mainJobId.slice(MIDDLE_END);
}

/** Returns the ids of all fallbacks that a message can have. */
export function fallbackIds(mainJobId: string): readonly string[] {
  return Array.from({ length: FALLBACKS_MAX }, (_, at) => fallbackId(mainJobId, at + 1));
}

/** Returns the message and its fallbacks before this one, in order. */
export function jobsBefore({ mainJobId, number }: Fallback): readonly string[] {
  return [mainJobId, ...fallbackIds(mainJobId).slice(0, number - 1)];
}

/** Encodes a fallback for the queue: `<message's job id>,<number>,<ms>,<event>+<event>`. */
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

/**
 * Whether a job's time counts from its acceptance, by the clock of the accepting process, instead of being a time of
 * day: its message was sent at once.
 */
export function countsFromMessage({
  dueMs,
  fallback,
}: {
  readonly dueMs?: number;
  readonly fallback?: Fallback;
}): boolean {
  return dueMs !== undefined && fallback !== undefined && dueMs - fallback.afterMs <= jobTimeMs(fallback.mainJobId);
}
