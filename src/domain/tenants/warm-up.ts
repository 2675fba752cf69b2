import type { ChannelName } from "../jobs/job.ts";
import type { Tenant } from "./tenant.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Whether the text is a calendar day, `YYYY-MM-DD`. */
export function isDay(text: string): boolean {
  if (!DAY.test(text)) return false;
  const ms = Date.parse(text);
  // Some parsers read 30 February as 2 March.
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** Returns the UTC day that contains the instant, counted from 1970-01-01. */
export function utcDayAt(unixMs: number): number {
  return Math.floor(unixMs / DAY_MS);
}

/** Returns the milliseconds until the next UTC day begins; never 0. */
export function untilNextUtcDayMs(unixMs: number): number {
  return (utcDayAt(unixMs) + 1) * DAY_MS - unixMs;
}

const WEEK_1 = 50;
const WEEK_2 = 100;
/** Above this daily allowance the address is warm. */
const WARM = 1_000_000;

/**
 * Returns how many messages a new sending address may send on a UTC day: 50 in its first week and before, 100 in its
 * second, from the third on twice as many as the week before; null: no limit. Mailbox providers defer or drop high
 * volumes from an unfamiliar address.
 *
 * `firstDay` is `YYYY-MM-DD` (see `isDay`), `day` as `utcDayAt` counts.
 */
export function warmUpAllowance(firstDay: string, day: number): number | null {
  const week = Math.floor((day - utcDayAt(Date.parse(firstDay))) / 7);
  if (week < 1) return WEEK_1;
  const allowance = WEEK_2 * 2 ** (week - 1);
  return allowance > WARM ? null : allowance;
}

/** Returns how many messages the tenant may send on a channel on a UTC day, or null: no limit. */
export function dailyAllowance(tenant: Tenant, channel: ChannelName, day: number): number | null {
  const from = channel === "email" ? tenant.emailSender?.warmUpFrom : undefined;
  return from === undefined ? null : warmUpAllowance(from, day);
}
