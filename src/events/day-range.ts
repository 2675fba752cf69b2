import { Type } from "@sinclair/typebox";
import { firstEventIdAt } from "../domain/jobs/event.ts";
import { ApiError } from "../http/api-error.ts";
import type { QueryParameter } from "../http/parameters.ts";

/** UTC days, both inclusive, as the unix milliseconds at which the first and the last day begin. */
export interface DayRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * One end of a range of days, as the unix milliseconds at which the day begins. Throws an `ApiError` 400 that names the
 * parameter.
 */
export function dayParameter(name: "from" | "to", description: string, example: string): QueryParameter<number> {
  const schema = Type.String({ format: "date" });
  return { description, schema, example, isRequired: true, read: (text) => parseDay(name, text) };
}

const Moment = Type.Union([Type.String({ format: "date" }), Type.String({ format: "date-time" })]);

/**
 * One end of a range of times, as unix ms: a UTC day or a time (RFC 3339), null if the parameter is absent. `to` is inclusive and its
 * value is exclusive: of a day the begin of the next one, of a time a millisecond later. Throws an `ApiError` 400 that names the parameter.
 */
export function momentParameter(
  name: "from" | "to",
  description: string,
  example: string,
): QueryParameter<number | null> {
  return {
    description: `${description} A UTC day or a time (RFC 3339).`,
    schema: Moment,
    example,
    read: (text) => (text === undefined ? null : readMoment(name, text)),
  };
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/i;

function readMoment(name: "from" | "to", text: string): number {
  const unixMs = parseMoment(text, name === "to");
  if (unixMs === null) {
    throw new ApiError(400, `${name} must be a day (YYYY-MM-DD) or a time such as 2026-11-21T07:30:00Z`);
  }
  return unixMs;
}

/** Unix ms; of an end, the first moment behind it. Null: the text is neither a day nor a time. */
export function parseMoment(text: string, isEnd: boolean): number | null {
  const ms = Date.parse(text);
  const isDay = DAY.test(text);
  // A day that does not exist would be taken for another one.
  const isReal = !Number.isNaN(ms) && (!isDay || new Date(ms).toISOString().startsWith(text));
  if (!isReal || !(isDay || TIME.test(text))) return null;
  return isDay ? ms + (isEnd ? DAY_MS : 0) : ms + (isEnd ? 1 : 0);
}

/** Throws an `ApiError` 400 for a range that ends before it begins. */
export function requireMoments(fromMs: number, beforeMs: number): void {
  if (beforeMs <= fromMs) throw new ApiError(400, "to must not be before from");
}

/** Throws an `ApiError` 400 for a range that ends before it begins. */
export function requireOrder({ fromMs, toMs }: DayRange): void {
  if (toMs < fromMs) throw new ApiError(400, "to must not be before from");
}

/** The ids of the events in the range: [fromEventId, toEventId). */
export function toEventIds({ fromMs, toMs }: DayRange): { readonly fromEventId: number; readonly toEventId: number } {
  return { fromEventId: eventIdAt(fromMs), toEventId: eventIdAt(toMs + DAY_MS) };
}

/** Ids begin at 1 and are exact up to 2^53; days beyond either end are clamped. */
function eventIdAt(unixMs: number): number {
  return Math.min(Math.max(firstEventIdAt(unixMs), 1), Number.MAX_SAFE_INTEGER);
}

function parseDay(name: string, text: string | undefined): number {
  if (text === undefined) throw new ApiError(400, `${name} is required: a date as YYYY-MM-DD`);
  const unixMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // The round trip refuses days that do not exist, such as 30 February.
  if (Number.isNaN(unixMs) || !new Date(unixMs).toISOString().startsWith(text)) {
    throw new ApiError(400, `${name} must be a calendar date as YYYY-MM-DD`);
  }
  return unixMs;
}
