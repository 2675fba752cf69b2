import type { ChannelName } from "../domain/jobs/job.ts";
import type { Steering } from "../domain/tenants/steering.ts";
import type { tenants } from "../storage/tables.ts";
import type { Steer } from "./registry.ts";

/** A tenant's columns with the operators' decisions about its jobs. */
type SteeringColumns = Pick<typeof tenants.$inferSelect, "paused" | "held" | "purgedBefore" | "resumedAt">;

/**
 * Converts the columns to the form of the tenant in memory; empty for the great majority of tenants, whose jobs were never
 * steered.
 */
export function readSteering(columns: SteeringColumns): { readonly steering?: Steering } {
  const { paused, held, purgedBefore, resumedAt } = columns;
  const [purges, resumes] = [Object.entries(purgedBefore), Object.entries(resumedAt)];
  if (paused.length + held.length + purges.length + resumes.length === 0) return {};
  const steering = {
    paused: new Set(paused),
    held: new Set(held),
    purgedBefore: new Map(purges),
    resumedAt: new Map(resumes),
  };
  return { steering };
}

/** Returns the columns after an operator's step. */
export function steered(
  columns: SteeringColumns,
  steer: Steer,
  { channels, nowMs }: { readonly channels: readonly ChannelName[]; readonly nowMs: number },
): SteeringColumns {
  const { paused, held, purgedBefore, resumedAt } = columns;
  switch (steer) {
    case "pause":
      return { paused: union(paused, channels), held, purgedBefore, resumedAt };
    case "resume": {
      const resumed = paused.filter((channel) => channels.includes(channel));
      return { paused: without(paused, channels), held, purgedBefore, resumedAt: withTime(resumedAt, resumed, nowMs) };
    }
    case "hold":
      return { paused, held: union(held, channels), purgedBefore, resumedAt };
    case "release":
      return { paused, held: without(held, channels), purgedBefore, resumedAt };
    case "purge":
      return { paused, held, purgedBefore: withTime(purgedBefore, channels, nowMs), resumedAt };
  }
}

function union(some: readonly ChannelName[], others: readonly ChannelName[]): ChannelName[] {
  return [...new Set([...some, ...others])];
}

function without(some: readonly ChannelName[], others: readonly ChannelName[]): ChannelName[] {
  return some.filter((channel) => !others.includes(channel));
}

/** A clock that was set back does not undo earlier times. */
function withTime(times: Readonly<Record<ChannelName, number>>, channels: readonly ChannelName[], nowMs: number) {
  return {
    ...times,
    ...Object.fromEntries(channels.map((channel) => [channel, Math.max(times[channel] ?? 0, nowMs)])),
  };
}
