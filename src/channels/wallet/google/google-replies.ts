import { isJsonObject, type Json, type JsonObject, parseJsonObject } from "../../../domain/texts/json.ts";

/** The cause of a failed call to the wallet's REST API. */
export type GoogleCause =
  /** The request is invalid, now and later. */
  | "invalid"
  | "missing"
  /** The id is already taken. */
  | "exists"
  /** Google accepts neither the token nor a new one. */
  | "credentials"
  /** The service account may not act for the issuer. */
  | "forbidden"
  /** No more notifications for this pass today, or too many calls overall. */
  | "quota"
  /** The next attempt may succeed. */
  | "busy"
  /** The call may have been executed. */
  | "unanswered"
  /** The whole service is down or unreachable. */
  | "away";

interface Rule {
  readonly cause: GoogleCause;
  readonly statuses: readonly [from: number, to: number];
  /** `error.errors[0].reason` or `error.status`, if it matters. */
  readonly reasons?: readonly string[];
}

/** The first matching rule decides; the default is `busy`. Rules look at status and reasons, never at the text. */
const RULES: readonly Rule[] = [
  { cause: "missing", statuses: [400, 400], reasons: ["classNotFound", "resourceNotFound"] },
  { cause: "exists", statuses: [400, 400], reasons: ["existingResource"] },
  { cause: "quota", statuses: [400, 499], reasons: ["quotaExceeded", "QuotaExceeded", "QuotaExceededException"] },
  { cause: "busy", statuses: [400, 499], reasons: ["rateLimitExceeded", "userRateLimitExceeded"] },
  { cause: "credentials", statuses: [401, 401] },
  { cause: "forbidden", statuses: [403, 403] },
  { cause: "missing", statuses: [404, 404] },
  { cause: "busy", statuses: [408, 408] },
  // Another call changed the same object at the time.
  { cause: "busy", statuses: [409, 409], reasons: ["ABORTED", "aborted"] },
  { cause: "exists", statuses: [409, 409] },
  { cause: "busy", statuses: [425, 425] },
  { cause: "quota", statuses: [429, 429] },
  // An intermediary gave the call up.
  { cause: "unanswered", statuses: [499, 499] },
  { cause: "invalid", statuses: [400, 499] },
  { cause: "away", statuses: [500, 599] },
];

export interface GoogleRefusal {
  readonly cause: GoogleCause;
  /** Google's message in the form shown to a tenant: one line, bounded. Empty if there is none. */
  readonly said: string;
}

/** Classifies an unsuccessful response. */
export function parseRefusal(status: number, text: string): GoogleRefusal {
  const error = errorIn(text);
  const errors: readonly unknown[] = Array.isArray(error["errors"]) ? error["errors"] : [];
  const [first] = errors;
  const given = [isJsonObject(first) ? readText(first["reason"]) : "", readText(error["status"])];
  const rule = RULES.find(
    ({ statuses: [from, to], reasons }) =>
      status >= from && status <= to && (reasons?.some((reason) => given.includes(reason)) ?? true),
  );
  return { cause: rule?.cause ?? "busy", said: quotable(readText(error["message"])) };
}

/**
 * Returns the delay in `Retry-After` (RFC 9110, 10.2.3) in milliseconds, up to `RETRY_AFTER_MS_MAX`; null if there is
 * none.
 */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) || ms <= 0 ? null : Math.min(ms, RETRY_AFTER_MS_MAX);
}

/** Limits the delay, because a call that is too early is better than one a day later. */
const RETRY_AFTER_MS_MAX = 60 * 60 * 1000;
const QUOTED_CHARS_MAX = 300;

/** Makes foreign text fit for a tenant. */
export function quotable(text: string): string {
  const line = text
    .slice(0, QUOTED_CHARS_MAX * 4)
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
  return line.length > QUOTED_CHARS_MAX ? `${line.slice(0, QUOTED_CHARS_MAX - 1).toWellFormed()}…` : line;
}

function errorIn(text: string): JsonObject {
  const error = parseJsonObject(text)?.["error"];
  return isJsonObject(error) ? error : {};
}

function readText(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
