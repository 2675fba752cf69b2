import { eventTimeMs } from "../domain/event.ts";
import type { TenantEvent } from "../domain/event-store.ts";
import { webhookLimits } from "./limits.ts";
import type { Webhook } from "./webhook.ts";

/** The body of a call, and the events in it. */
export interface Message {
  /** The same for every repeat of these events to this webhook. */
  readonly messageId: string;
  readonly json: string;
  readonly events: number;
  readonly firstEventId: number;
  readonly lastEventId: number;
}

/**
 * Cuts events, oldest first, into calls: as many events as the webhook takes at a time, and not much more than the bytes of a call. A
 * call that failed is cut again as it was: nothing behind `retryThrough` joins its events.
 */
export function* messagesOf(
  { webhookId, batchMax, progress: { retryThrough } }: Pick<Webhook, "webhookId" | "batchMax" | "progress">,
  events: readonly TenantEvent[],
): Generator<Message> {
  let texts: string[] = [];
  let [bytes, first] = [0, 0];
  for (const [at, event] of events.entries()) {
    const text = JSON.stringify(shownEvent(event));
    if (texts.length === 0) first = event.eventId;
    texts.push(text);
    bytes += Buffer.byteLength(text);
    const isFull = texts.length >= batchMax || bytes >= webhookLimits.batchBytesMax;
    if (!isFull && event.eventId !== retryThrough && at < events.length - 1) continue;
    const last = event.eventId;
    const named = first === last ? String(first) : `${first}-${last}`;
    const json = batchMax === 1 ? text : `[${texts.join(",")}]`;
    yield { messageId: `${webhookId}_${named}`, json, events: texts.length, firstEventId: first, lastEventId: last };
    texts = [];
    bytes = 0;
  }
}

/** The body that a test by hand sends. */
export function testMessage(webhookId: string, nowMs: number): { readonly messageId: string; readonly json: string } {
  const json = JSON.stringify({
    type: "webhook.test",
    timestamp: new Date(nowMs).toISOString(),
    data: { webhook_id: webhookId },
  });
  return { messageId: `${webhookId}_test-${nowMs}`, json };
}

function shownEvent({ eventId, type, channel, jobId, result }: TenantEvent) {
  const time = new Date(eventTimeMs(eventId)).toISOString();
  return {
    type: `${channel}.${type}`,
    timestamp: time,
    data: {
      event_id: eventId,
      job_id: jobId,
      channel,
      event_type: type,
      result,
      // As `GET /v1/events` shows it.
      created_at: `${time.slice(0, 19)}Z`,
    },
  };
}
