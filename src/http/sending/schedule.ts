import { type TSchema, Type } from "@sinclair/typebox";
import { isCalendarDay } from "../../domain/calendar-day.ts";
import { SCHEDULE_MS_MAX } from "../../domain/jobs/schedule.ts";
import { isJsonObject, type Json } from "../../domain/texts/json.ts";
import { optional } from "../schemas.ts";
import type { Refusal } from "./acceptance.ts";

/** A time with its zone. */
export const ScheduledAt = Type.String({
  format: "date-time",
  description:
    "When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less than a second " +
    "ahead: at once.",
});

/** The body of a send with the member that all sends have. */
export function schedulable(schema: TSchema): TSchema {
  return withMember(schema, "scheduled_at", optional(ScheduledAt));
}

/** The schema of a body, or each of its alternatives, with one more member. */
export function withMember(schema: TSchema, name: string, member: TSchema): TSchema {
  const properties: unknown = schema["properties"];
  const anyOf: unknown = schema["anyOf"];
  if (properties === undefined && Array.isArray(anyOf)) {
    return { ...schema, anyOf: anyOf.map((each: TSchema): TSchema => withMember(each, name, member)) };
  }
  return { ...schema, properties: { ...(isJsonObject(properties) ? properties : {}), [name]: member } };
}

/** A send's body without `scheduled_at`, which no channel accepts, and its scheduled time (unix ms); null: at once. */
export type TimedBody =
  | { readonly ok: true; readonly body: unknown; readonly dueMs: number | null }
  | { readonly ok: false; readonly refusal: Refusal };

export function takeSchedule(body: unknown, nowMs: number): TimedBody {
  if (!isJsonObject(body) || !("scheduled_at" in body)) return { ok: true, body, dueMs: null };
  const { scheduled_at, ...others } = body;
  if (scheduled_at === null) return { ok: true, body: others, dueMs: null };
  const time = readSchedule(scheduled_at, nowMs);
  if ("refusal" in time) return { ok: false, refusal: time.refusal };
  // Other clocks than this one decide whether the time has come.
  return { ok: true, body: others, dueMs: time.dueMs };
}

const TIME = new RegExp(
  "^(?<date>\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01]))T" +
    "(?<time>(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d{1,9})?)?)(?<zone>Z|[+-](?:[01]\\d|2[0-3]):?[0-5]\\d)$",
);

/** The value of a `scheduled_at`. */
export function readSchedule(
  value: Json | undefined,
  nowMs: number,
): { readonly dueMs: number } | { readonly refusal: Refusal } {
  const dueMs = typeof value === "string" ? parseTime(value) : null;
  if (dueMs === null) {
    return malformed("scheduled_at must be a time with its zone in ISO 8601, such as 2026-11-21T09:30:00Z");
  }
  if (dueMs > nowMs + SCHEDULE_MS_MAX) return malformed("scheduled_at must be at most 30 days ahead");
  return { dueMs };
}

/** Unix milliseconds; null: it is no time with its zone in ISO 8601. */
export function parseTime(text: string): number | null {
  const { date = "", time = "", zone = "" } = TIME.exec(text.toUpperCase())?.groups ?? {};
  if (!isCalendarDay(date)) return null;
  const [clock = "", fraction = ""] = time.split(".");
  const whole = Date.parse(`${date}T${clock}${zone.replace(/^(.\d\d)(\d\d)$/, "$1:$2")}`);
  return Number.isNaN(whole) ? null : whole + Math.floor(Number(`0.${fraction || 0}`) * 1000);
}

function malformed(message: string): { readonly refusal: Refusal } {
  return { refusal: { status: 400, message } };
}
