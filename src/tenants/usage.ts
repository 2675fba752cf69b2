import type { EventType } from "../domain/jobs/event.ts";
import type { MonthlyEvents } from "../domain/jobs/event-store.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import { monthsBetween } from "./month.ts";
import type { UsageCount } from "./usage-counter.ts";
import type { TokenUsage, UsageQuery } from "./usage-repository.ts";

/** A tenant's usage in a month, as operators see it. */
export interface UsageRecord {
  readonly tenant_id: string;
  readonly tenant_name: string;
  readonly month: string;
  readonly api_calls: number;
  readonly accepted: number;
  /** By channel. */
  readonly sent: Readonly<Record<ChannelName, number>>;
  readonly delivered: number;
  readonly bounced: number;
  readonly failed: number;
  readonly suppressed: number;
  readonly tokens_charged: number;
  readonly tokens_given_back: number;
  readonly tokens_topped_up: number;
  readonly tokens_taken: number;
  /** Charges minus refunds; below 0 if the month's refunds exceed its charges. Operators' own movements are not included. */
  readonly tokens_billed: number;
}

export interface UsageParts {
  readonly names: ReadonlyMap<string, string>;
  readonly channels: readonly ChannelName[];
  readonly counts: readonly UsageCount[];
  readonly tokens: readonly TokenUsage[];
  readonly events: readonly MonthlyEvents[];
}

/** Returns one record per tenant and month, also for months without use. */
export function usageRecords({ tenantIds, from, to }: UsageQuery, parts: UsageParts): readonly UsageRecord[] {
  const counts = new Map(parts.counts.map((one) => [toKey(one), one]));
  const tokens = new Map(parts.tokens.map((one) => [toKey(one), one]));
  const events = Map.groupBy(parts.events, toKey);
  return tenantIds.flatMap((tenantId) =>
    monthsBetween(from, to).map((month) => {
      const key = toKey({ tenantId, month });
      const [count, moved, own] = [counts.get(key), tokens.get(key), events.get(key) ?? []];
      const sum = (type: EventType, channel?: ChannelName) =>
        own
          .filter((one) => one.type === type && (channel === undefined || one.channel === channel))
          .reduce((total, one) => total + one.events, 0);
      return {
        tenant_id: tenantId,
        tenant_name: parts.names.get(tenantId) ?? "",
        month,
        api_calls: count?.apiCalls ?? 0,
        accepted: count?.accepted ?? 0,
        sent: Object.fromEntries(parts.channels.map((channel) => [channel, sum("sent", channel)])),
        delivered: sum("delivered"),
        bounced: sum("bounced"),
        failed: sum("failed"),
        suppressed: sum("suppressed"),
        tokens_charged: moved?.charged ?? 0,
        tokens_given_back: moved?.givenBack ?? 0,
        tokens_topped_up: moved?.toppedUp ?? 0,
        tokens_taken: moved?.taken ?? 0,
        tokens_billed: (moved?.charged ?? 0) - (moved?.givenBack ?? 0),
      };
    }),
  );
}

/** RFC 4180, with a header. A text that a spreadsheet would take for a formula begins with an apostrophe. */
export function usageCsv(records: readonly UsageRecord[], channels: readonly ChannelName[]): string {
  const header = [...BEFORE, ...channels.map((channel) => `sent_${channel}`), ...AFTER];
  const lines = records.map((record) => [
    ...BEFORE.map((name) => record[name]),
    ...channels.map((channel) => record.sent[channel] ?? 0),
    ...AFTER.map((name) => record[name]),
  ]);
  return [header, ...lines].map((line) => `${line.map(csvField).join(",")}\r\n`).join("");
}

const BEFORE = ["tenant_id", "tenant_name", "month", "api_calls", "accepted"] as const;
const AFTER = [
  "delivered",
  "bounced",
  "failed",
  "suppressed",
  "tokens_charged",
  "tokens_given_back",
  "tokens_topped_up",
  "tokens_taken",
  "tokens_billed",
] as const;

function csvField(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[\s]*[=+\-@]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function toKey({ tenantId, month }: { readonly tenantId: string; readonly month: string }): string {
  return `${tenantId} ${month}`;
}
