import { EVENT_TYPES, type EventType } from "../domain/jobs/event.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import { NEWS_TYPES, type NewsType } from "../domain/tenants/tenant-news.ts";

/** What a webhook can be told of: events of messages, and other news. */
export const WEBHOOK_TYPES = [...EVENT_TYPES, ...NEWS_TYPES] as const;
export type WebhookType = EventType | NewsType;

/**
 * Events come from the event store, news from the registry. Each of the two is told in an order of its own; between them there
 * is none.
 */
export const STREAMS = ["events", "news"] as const;
export type Stream = (typeof STREAMS)[number];

export const DISABLED_REASONS = ["gone", "failing"] as const;
/** `gone`: the receiver answered 410; `failing`: it took nothing for three days. */
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Ids in (afterEventId, throughEventId]: of events, or of news, whose ids are of the same clock. */
export interface EventRange {
  readonly afterEventId: number;
  readonly throughEventId: number;
}

/** How far a webhook was told of one stream. */
export interface Place {
  readonly position: number;
  /** What is told again first; null: nothing. */
  readonly replay: EventRange | null;
  /** The last id of the call that failed: its repeat has the same content. */
  readonly retryThrough: number | null;
}

/** How far a webhook was told, and how its receiver does. */
export interface Progress extends Readonly<Record<Stream, Place>> {
  /** Calls that failed one after the other. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** Null: now. */
  readonly nextAtMs: number | null;
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
  readonly eventTypes: readonly WebhookType[] | null;
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
  /** The last id of the tenant's news; 0: it has none. */
  readonly newsMark: number;
}

/** One call. */
export interface Attempt {
  readonly atMs: number;
  readonly isTest: boolean;
  readonly messageId: string;
  /** How many it had, events or news. */
  readonly events: number;
  /** Null: it had no events. */
  readonly firstEventId: number | null;
  readonly lastEventId: number | null;
  /** Of the answer; null: there was none. */
  readonly status: number | null;
  /** Null: the receiver took it. */
  readonly error: string | null;
  /** The beginning of what the receiver said to a call that it did not take; null: nothing, or it took it. */
  readonly answer: string | null;
  readonly ms: number;
}

/** Whether the webhook is to be told of such an event or news. */
export function wants(
  { eventTypes, channels }: Pick<Webhook, "eventTypes" | "channels">,
  event: { readonly type: WebhookType; readonly channel: ChannelName },
): boolean {
  return (eventTypes?.includes(event.type) ?? true) && (channels?.includes(event.channel) ?? true);
}

/** The types of events that it is to be told of; null: all. */
export function selectEventTypes({ eventTypes }: Pick<Webhook, "eventTypes">): readonly EventType[] | null {
  return eventTypes === null ? null : EVENT_TYPES.filter((type) => eventTypes.includes(type));
}

/** The types of news that it is to be told of. */
export function selectNewsTypes({ eventTypes }: Pick<Webhook, "eventTypes">): readonly NewsType[] {
  return NEWS_TYPES.filter((type) => eventTypes?.includes(type) ?? true);
}
