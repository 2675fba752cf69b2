import type { Expiring } from "../../domain/channels/credentials.ts";
import type { EventType } from "../../domain/jobs/event.ts";
import type { MinuteEvents } from "../../domain/jobs/event-store.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { QueueFacts } from "../../domain/jobs/queue-depth.ts";
import type { KnownStatuses } from "../../domain/process-status.ts";
import type { GovernedLevel } from "../../domain/tenants/reputation.ts";
import type { ReadinessState } from "../../http/readiness.ts";

export interface RateFacts {
  /** Rates of the last hour. */
  readonly minutes: readonly MinuteEvents[];
  /** Since the UTC day began. */
  readonly today: ReadonlyMap<EventType, number>;
}

export interface RegistryFacts {
  readonly tenants: number;
  /** Soonest first. */
  readonly expiring: readonly Expiring[];
  /** Webhooks disabled within the last week and not enabled since, latest first. */
  readonly disabledWebhooks: readonly DisabledWebhookFact[];
  /** Tenants whose e-mail is governed for its reputation. */
  readonly governed: readonly GovernedFact[];
}

export interface GovernedFact {
  readonly tenantId: string;
  readonly level: GovernedLevel;
  readonly sinceMs: number;
}

export interface DisabledWebhookFact {
  readonly tenantId: string;
  readonly webhookId: string;
  /** `gone`: its receiver answered 410; `failing`: it accepted no call for three days. */
  readonly reason: "gone" | "failing";
  readonly atMs: number;
}

/** The facts at an instant. Null: the store did not answer. */
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

/** Returns the start of the first displayed minute; the last one is still running. */
export function firstMinuteMs(nowMs: number): number {
  return (Math.floor(nowMs / MINUTE_MS) - MINUTES_SHOWN + 1) * MINUTE_MS;
}
