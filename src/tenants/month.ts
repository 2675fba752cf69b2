import { Type } from "@sinclair/typebox";
import { ApiError } from "../http/api-error.ts";
import type { QueryParameter } from "../http/parameters.ts";

/** Returns the UTC month of a time (Unix ms), `YYYY-MM`. */
export function toMonth(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}

/** Returns the months from one to another, both inclusive; none if the second is earlier. */
export function monthsBetween(from: string, to: string): readonly string[] {
  const count = toIndex(to) - toIndex(from) + 1;
  return Array.from({ length: Math.max(0, count) }, (_, n) => monthAt(toIndex(from) + n));
}

/** Returns the following month. */
export function nextMonth(month: string): string {
  return monthAt(toIndex(month) + 1);
}

/** Null if it is absent. */
export function monthParameter(name: string, description: string): QueryParameter<string | null> {
  return {
    description,
    schema: Type.String({ pattern: MONTH.source }),
    example: "2026-11",
    read(text) {
      if (text === undefined) return null;
      if (!MONTH.test(text)) throw new ApiError(400, `${name} must be a month, YYYY-MM`);
      return text;
    },
  };
}

const MONTH = /^20[0-9]{2}-(0[1-9]|1[0-2])$/;

function toIndex(month: string): number {
  return Number(month.slice(0, 4)) * 12 + Number(month.slice(5)) - 1;
}

function monthAt(index: number): string {
  return `${Math.floor(index / 12)}-${String((index % 12) + 1).padStart(2, "0")}`;
}
