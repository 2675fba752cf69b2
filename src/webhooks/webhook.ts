import { EVENT_TYPES, type EventType } from "../domain/jobs/event.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import { NEWS_TYPES, type NewsType } from "../domain/tenants/tenant-news.ts";

/** The types that a webhook can subscribe to: events of messages, and other news. */
export const WEBHOOK_TYPES = [...EVENT_TYPES, ...NEWS_TYPES] as const;
export type WebhookType = EventType | NewsType;

/**
 * Events come from the event store, news from the registry. Each stream is delivered in its own order; there is no order
 * between them.
 */
export const STREAMS = ["events", "news"] as const;
export type Stream = (typeof STREAMS)[number];

export const DISABLED_REASONS = ["gone", "failing"] as const;
/** `gone`: the receiver answered 410; `failing`: it accepted no call for three days. */
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Ids in (afterEventId, throughEventId]: of events, or of news, whose ids are of the same clock. */
export interface EventRange {
  readonly afterEventId: number;
  readonly throughEventId: number;
}

/** A webhook's position in one stream. */
export interface Place {
  readonly position: number;
  /** The range to replay first; null: none. */
  readonly replay: EventRange | null;
  /** The last id of the call that failed: its repeat has the same content. */
  readonly retryThrough: number | null;
}

/** A webhook's positions and the state of its receiver. */
export interface Progress extends Readonly<Record<Stream, Place>> {
  /** Calls that failed one after the other. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** Null: now. */
  readonly nextAtMs: number | null;
  readonly lastError: string | null;
  readonly disabled: { readonly reason: DisabledReason; readonly atMs: number } | null;
}

/** A tenant's webhook. */
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

/** A webhook with its signing secrets, which stay sealed until a call. */
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
  /** The number of events or news items in the call. */
  readonly events: number;
  /** Null: it had no events. */
  readonly firstEventId: number | null;
  readonly lastEventId: number | null;
  /** The answer's HTTP status; null: there was no answer. */
  readonly status: number | null;
  /** Null: the receiver accepted it. */
  readonly error: string | null;
  /** The beginning of the receiver's answer to a refused call; null: the answer was empty, or the call was accepted. */
  readonly answer: string | null;
  readonly ms: number;
}

/** Whether the webhook subscribes to such an event or news item. */
export function wants(
  { eventTypes, channels }: Pick<Webhook, "eventTypes" | "channels">,
  event: { readonly type: WebhookType; readonly channel: ChannelName },
): boolean {
  return (eventTypes?.includes(event.type) ?? true) && (channels?.includes(event.channel) ?? true);
}

/** Returns the event types that it subscribes to; null: all. */
export function selectEventTypes({ eventTypes }: Pick<Webhook, "eventTypes">): readonly EventType[] | null {
  return eventTypes === null ? null : EVENT_TYPES.filter((type) => eventTypes.includes(type));
}

/** Returns the news types that it subscribes to. */
export function selectNewsTypes({ eventTypes }: Pick<Webhook, "eventTypes">): readonly NewsType[] {
  return NEWS_TYPES.filter((type) => eventTypes?.includes(type) ?? true);
}
