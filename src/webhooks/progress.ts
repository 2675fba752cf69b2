import type { Random } from "../domain/random.ts";
import type { WebhookAnswer } from "../domain/texts/outbound.ts";
import { webhookLimits } from "./limits.ts";
import type { EventRange, Place, Progress, Stream } from "./webhook.ts";

/*
 * A webhook's progress. Pure.
 *
 *   told ──call taken──▶ told, further on
 *     └────call failed─▶ waits ──due──▶ the same call again
 *                          ├─not wanted any more──▶ told, further on
 *                          └─410, or three days──▶ disabled ──enabled by the tenant──▶ told, from where it stopped
 */

/** Returns the next range to deliver, up to the last event known to be stored. */
export function nextRange({ position, replay }: Place, mark: number): EventRange {
  return replay ?? { afterEventId: position, throughEventId: Math.max(position, mark) };
}

/** Records that the stream was delivered through this id. */
export function told(progress: Progress, stream: Stream, id: number): Progress {
  const on = moved(progress, stream, id);
  return { ...on, ...WELL, [stream]: { ...on[stream], retryThrough: null } };
}

/** Records that the stream has no wanted item up to this id. A failed call in that range is no longer wanted. */
export function passed(progress: Progress, stream: Stream, id: number): Progress {
  const { retryThrough } = progress[stream];
  return retryThrough !== null && retryThrough <= id ? told(progress, stream, id) : moved(progress, stream, id);
}

function moved(progress: Progress, stream: Stream, id: number): Progress {
  const place = progress[stream];
  const { replay, position } = place;
  if (replay === null) return { ...progress, [stream]: { ...place, position: Math.max(position, id) } };
  const rest = id >= replay.throughEventId ? null : { ...replay, afterEventId: id };
  return { ...progress, [stream]: { ...place, replay: rest } };
}

/** The state of a webhook without a failure since its last success. */
export const WELL = {
  failures: 0,
  failingSinceMs: null,
  nextAtMs: null,
  lastError: null,
} as const satisfies Partial<Progress>;

/** Returns the reason why the answer is a failure, or null. */
export function findFault(answer: WebhookAnswer): string | null {
  if (answer.kind === "failed") return answer.why;
  const { status } = answer;
  if (status >= 200 && status < 300) return null;
  return `the receiver answered ${status}${status >= 300 && status < 400 ? ": redirects are not followed" : ""}`;
}

/** Records that a call through this id of the stream failed at `nowMs`. */
export function failed(
  progress: Progress,
  call: { readonly answer: WebhookAnswer; readonly stream: Stream; readonly lastId: number; readonly nowMs: number },
  random: Pick<Random, "next">,
): Progress {
  const { answer, stream, lastId, nowMs } = call;
  const failures = progress.failures + 1;
  const failingSinceMs = progress.failingSinceMs ?? nowMs;
  const failing = { failures, failingSinceMs, lastError: findFault(answer) };
  const common = { ...progress, ...failing, [stream]: { ...progress[stream], retryThrough: lastId } };
  const isGone = answer.kind === "answered" && answer.status === 410;
  if (isGone || nowMs - failingSinceMs >= webhookLimits.disableAfterMs) {
    return { ...common, nextAtMs: null, disabled: { reason: isGone ? "gone" : "failing", atMs: nowMs } };
  }
  return { ...common, nextAtMs: nowMs + waitMs(failures, answer, nowMs, random) };
}

function waitMs(failures: number, answer: WebhookAnswer, nowMs: number, random: Pick<Random, "next">): number {
  const { retryMs, jitter, retryAfterMsMin, retryAfterMsMax } = webhookLimits;
  const asked = answer.kind === "answered" ? retryAfterMs(answer.retryAfter, nowMs) : null;
  if (asked !== null) return Math.min(Math.max(asked, retryAfterMsMin), retryAfterMsMax);
  const planned = retryMs[Math.min(failures, retryMs.length) - 1] ?? 0;
  return Math.round(planned * (1 - jitter + 2 * jitter * random.next()));
}

/** Returns the wait that a `Retry-After` requests (RFC 9110, 10.2.3: seconds or a date), or null. */
export function retryAfterMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const atMs = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}

/** Skips ahead to an event that was not delivered yet; the events in between, including failed ones, are left out. */
export function skipped(progress: Progress, throughEventId: number): Progress {
  const skip = (place: Place): Place =>
    place.position >= throughEventId ? place : { position: throughEventId, replay: null, retryThrough: null };
  return { ...progress, ...WELL, events: skip(progress.events), news: skip(progress.news) };
}

/** Replays a range: delivered events are delivered again, once. A failed call is split anew. */
export function replayed({ position }: Place, { afterEventId, throughEventId }: EventRange): Place {
  const anew = { position, replay: null, retryThrough: null };
  // Beyond the position, the replay and the next events are one range.
  if (throughEventId >= position) return { ...anew, position: Math.min(position, afterEventId) };
  return { ...anew, replay: afterEventId < throughEventId ? { afterEventId, throughEventId } : null };
}
