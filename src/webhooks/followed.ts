import type { Timer } from "../domain/clock.ts";
import { nextRange } from "./progress.ts";
import { type Progress, type SealedWebhook, STREAMS, type Stream, selectNewsTypes } from "./webhook.ts";

/** A shard that this process holds. */
export interface HeldShard {
  readonly shard: number;
  /** Aborts when another process has taken over the shard. */
  readonly lost: AbortSignal;
  isSurelyHeld(): boolean;
}

export interface Held {
  readonly term: HeldShard;
  readonly cutOff: AbortController;
}

/** A webhook that this process calls. */
export interface Followed {
  webhook: SealedWebhook;
  readonly held: Held;
  /** The last event up to which the stream can be read without gaps, and the last known event. */
  mark: number;
  seen: number;
  /** The last stored news item that the webhook may receive. */
  newsMark: number;
  /** The stream of its last turn. */
  lastTurn: Stream;
  isSettling: boolean;
  state: "idle" | "waiting" | "queued" | "running";
  timer: Timer | null;
  /** When the next turn may begin (monotonic). */
  notBeforeMs: number;
  span: number;
  notedPositions: Readonly<Record<Stream, number>>;
  untrimmed: number;
  isGone: boolean;
}

/** Returns the stream of its next call; null: there is none. */
export function nextStream(one: Followed): Stream | null {
  const { progress } = one.webhook;
  const behind = STREAMS.filter((stream) => {
    const { afterEventId, throughEventId } = nextRange(progress[stream], getMark(one, stream));
    return afterEventId < throughEventId;
  });
  const failed = behind.find((stream) => progress.failures > 0 && progress[stream].retryThrough !== null);
  return failed ?? behind.find((stream) => stream !== one.lastTurn) ?? behind[0] ?? null;
}

export function getMark({ mark, newsMark }: Followed, stream: Stream): number {
  return stream === "events" ? mark : newsMark;
}

/**
 * Returns 0 for a webhook that does not subscribe to news, except for a failed call from before, which must be passed first.
 */
export function getNewsMark(webhook: SealedWebhook): number {
  const { newsMark, progress } = webhook;
  return selectNewsTypes(webhook).length === 0 ? (progress.news.retryThrough ?? 0) : newsMark;
}

export function readPositions({ events, news }: Progress): Readonly<Record<Stream, number>> {
  return { events: events.position, news: news.position };
}
