import type { JsonObject } from "./json.ts";
import type { Page } from "./registry.ts";

/** A message that somebody wrote to one of the numbers that are sent from. */
export interface IncomingMessage {
  /** The provider's. */
  readonly id: string;
  /** The provider's id of the number that it came to, or null where it did not say. */
  readonly phoneNumberId: string | null;
  /** Digits of the writer's number. */
  readonly from: string;
  /** What the writer calls itself. */
  readonly name: string | null;
  /** The provider's word: `text`, `image`, `button`, … */
  readonly type: string;
  /** As the provider sent it; null where that was too long to be kept. */
  readonly content: JsonObject | null;
}

export interface ReceivedMessage extends IncomingMessage {
  /** Unix milliseconds at which it was recorded. */
  readonly receivedAtMs: number;
}

/**
 * The newest messages that came in, `limits.incomingMessagesMax` of them. Rejects with `TransportError` (effect unknown,
 * safe to repeat) or `UnavailableError`.
 */
export interface IncomingMessages {
  /** Resolves, when they are on disk, with how many were new: a message is recorded once while it is kept. */
  record(messages: readonly IncomingMessage[]): Promise<number>;
  /** Newest first. `ApiError` 400: this cursor was not given out. */
  page(cursor: string | null, limit: number): Promise<Page<ReceivedMessage>>;
}
