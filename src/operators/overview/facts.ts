import type { Expiring } from "../../domain/channels/credentials.ts";
import type { EventType } from "../../domain/jobs/event.ts";
import type { MinuteEvents } from "../../domain/jobs/event-store.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { QueueFacts } from "../../domain/jobs/queue-depth.ts";
import type { KnownStatuses } from "../../domain/process-status.ts";
import type { ReadinessState } from "../../http/readiness.ts";

export interface RateFacts {
  /** Of the last hour. */
  readonly minutes: readonly MinuteEvents[];
  /** Since the UTC day began. */
  readonly today: ReadonlyMap<EventType, number>;
}

export interface RegistryFacts {
  readonly tenants: number;
  /** Soonest first. */
  readonly expiring: readonly Expiring[];
  /** Webhooks that were disabled within the last week and still are, latest first. */
  readonly disabledWebhooks: readonly DisabledWebhookFact[];
}

export interface DisabledWebhookFact {
  readonly tenantId: string;
  readonly webhookId: string;
  /** `gone`: its receiver said so; `failing`: it took nothing for three days. */
  readonly reason: "gone" | "failing";
  readonly atMs: number;
}

/** What is known at an instant. Null: its store did not answer. */
export interface Facts {
  /** Unix ms. */
  readonly nowMs: number;
  readonly channels: readonly ChannelName[];
  readonly queue: QueueFacts | null;
  readonly processes: KnownStatuses | null;
  readonly rates: RateFacts | null;
  readonly registry: RegistryFacts | null;
  readonly readiness: ReadinessState | null;
}

export const MINUTE_MS = 60_000;
export const MINUTES_SHOWN = 60;

/** When the first minute begins of those that are shown; the last one is still running. */
export function firstMinuteMs(nowMs: number): number {
  return (Math.floor(nowMs / MINUTE_MS) - MINUTES_SHOWN + 1) * MINUTE_MS;
}
