import type { EventType } from "../domain/event.ts";
import type { ChannelName } from "../domain/job.ts";

export const DISABLED_REASONS = ["gone", "failing"] as const;
/** `gone`: the receiver answered 410; `failing`: it took nothing for three days. */
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Event ids in (afterEventId, throughEventId]. */
export interface EventRange {
  readonly afterEventId: number;
  readonly throughEventId: number;
}

/** How far a webhook was told, and how its receiver does. */
export interface Progress {
  readonly position: number;
  /** What is told again first; null: nothing. */
  readonly replay: EventRange | null;
  /** Calls that failed one after the other. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** Null: now. */
  readonly nextAtMs: number | null;
  /** The last event of the call that failed: its repeat has the same events. */
  readonly retryThrough: number | null;
  readonly lastError: string | null;
  readonly disabled: { readonly reason: DisabledReason; readonly atMs: number } | null;
}

/** Where a tenant is told of its events. */
export interface Webhook {
  readonly webhookId: string;
  readonly tenantId: string;
  readonly url: string;
  readonly description: string | null;
  /** Null: all. */
  readonly eventTypes: readonly EventType[] | null;
  /** Null: all. */
  readonly channels: readonly ChannelName[] | null;
  /** 1: an event a call, as an object; more: arrays. */
  readonly batchMax: number;
  /** As in the table. */
  readonly epoch: number;
  readonly progress: Progress;
  readonly createdAtMs: number;
}

/** With what it is signed with: sealed, and opened for a call. */
export interface SealedWebhook extends Webhook {
  readonly shard: number;
  readonly secret: string;
  readonly formerSecret: string | null;
  readonly formerUntilMs: number | null;
}

/** One call. */
export interface Attempt {
  readonly atMs: number;
  readonly isTest: boolean;
  readonly messageId: string;
  readonly events: number;
  readonly firstEventId: number | null;
  readonly lastEventId: number | null;
  /** Of the answer; null: there was none. */
  readonly status: number | null;
  /** Null: the receiver took it. */
  readonly error: string | null;
  readonly ms: number;
}

/** Whether the webhook is to be told of such an event. */
export function wants(
  { eventTypes, channels }: Pick<Webhook, "eventTypes" | "channels">,
  event: { readonly type: EventType; readonly channel: ChannelName },
): boolean {
  return (eventTypes?.includes(event.type) ?? true) && (channels?.includes(event.channel) ?? true);
}
