import { eventTimeMs } from "../domain/jobs/event.ts";
import type { TenantEvent } from "../domain/jobs/event-store.ts";
import { failureClassOfEvent } from "../domain/jobs/failure-class.ts";
import type { TenantNews } from "../domain/tenants/tenant-news.ts";
import { webhookLimits } from "./limits.ts";
import type { Stream, Webhook } from "./webhook.ts";

/** An event or a news item as a webhook receives it. */
export interface Told {
  readonly id: number;
  readonly json: string;
}

interface StoredNews extends Pick<TenantNews, "type" | "atMs"> {
  readonly id: number;
  readonly data: string;
}

/** The body of a call and its range. */
export interface Message {
  /** The same for every repeat of this content to this webhook. */
  readonly messageId: string;
  readonly json: string;
  readonly events: number;
  readonly firstId: number;
  readonly lastId: number;
}

/**
 * Splits a stream, oldest first, into calls of the webhook's batch size and about the byte limit of a call. A failed call is
 * split as before: no item after `retryThrough` joins it.
 */
export function* buildMessages(
  { webhookId, batchMax, progress }: Pick<Webhook, "webhookId" | "batchMax" | "progress">,
  stream: Stream,
  all: readonly Told[],
): Generator<Message> {
  const { retryThrough } = progress[stream];
  let texts: string[] = [];
  let [bytes, firstId] = [0, 0];
  for (const [at, { id, json: text }] of all.entries()) {
    if (texts.length === 0) firstId = id;
    texts.push(text);
    bytes += Buffer.byteLength(text);
    const isFull = texts.length >= batchMax || bytes >= webhookLimits.batchBytesMax;
    if (!isFull && id !== retryThrough && at < all.length - 1) continue;
    const named = firstId === id ? String(id) : `${firstId}-${id}`;
    const json = batchMax === 1 ? text : `[${texts.join(",")}]`;
    // An event and news may have the same id.
    const messageId = `${webhookId}_${stream === "news" ? "news-" : ""}${named}`;
    yield { messageId, json, events: texts.length, firstId, lastId: id };
    texts = [];
    bytes = 0;
  }
}

/** Converts a news item to its form in a call. `data` is the text of a JSON object. */
export function toldNews({ id, type, atMs, data }: StoredNews): Told {
  const head = JSON.stringify({ type, timestamp: new Date(atMs).toISOString() });
  return { id, json: `${head.slice(0, -1)},"data":${data}}` };
}

/** Builds the body of a manual test. */
export function testMessage(webhookId: string, nowMs: number): { readonly messageId: string; readonly json: string } {
  const json = JSON.stringify({
    type: "webhook.test",
    timestamp: new Date(nowMs).toISOString(),
    data: { webhook_id: webhookId },
  });
  return { messageId: `${webhookId}_test-${nowMs}`, json };
}

/** Converts an event to its form in a call. */
export function toldEvent({ eventId, type, channel, jobId, result }: TenantEvent): Told {
  const failureClass = failureClassOfEvent({ channel, type, result });
  const time = new Date(eventTimeMs(eventId)).toISOString();
  const shown = {
    type: `${channel}.${type}`,
    timestamp: time,
    data: {
      event_id: eventId,
      job_id: jobId,
      channel,
      event_type: type,
      result,
      ...(failureClass !== null && { failure_class: failureClass }),
      // As `GET /v1/events` shows it.
      created_at: `${time.slice(0, 19)}Z`,
    },
  };
  return { id: eventId, json: JSON.stringify(shown) };
}
