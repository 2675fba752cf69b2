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

/** The same, null if the parameter is absent. */
export function optionalDay(name: "from" | "to", description: string, example: string): QueryParameter<number | null> {
  const schema = Type.String({ format: "date" });
  return { description, schema, example, read: (text) => (text === undefined ? null : parseDay(name, text)) };
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
