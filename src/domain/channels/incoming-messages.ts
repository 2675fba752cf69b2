import type { Page } from "../page.ts";
import type { Done, InvalidCursor } from "../store-result.ts";
import type { JsonObject } from "../texts/json.ts";

/**
 * A message that a person wrote to one of the tenants' sending numbers, or another part of a webhook call that is kept.
 */
export interface IncomingMessage {
  /** The provider's id. */
  readonly id: string;
  /** The provider's id of the receiving number, or null if the provider did not say. */
  readonly phoneNumberId: string | null;
  /** Digits of the writer's number; null: the writer's number is hidden. */
  readonly from: string | null;
  /** The provider's id of the writer; null: the provider sent none. */
  readonly userId: string | null;
  /** The writer's username. */
  readonly username: string | null;
  /** The writer's display name. */
  readonly name: string | null;
  /** The provider's type: `text`, `image`, `button`, …; for other parts of a call, the type of their update. */
  readonly type: string;
  /** As the provider sent it; null if that was too long to keep. */
  readonly content: JsonObject | null;
}

export interface ReceivedMessage extends IncomingMessage {
  /** Unix milliseconds at which it was recorded. */
  readonly receivedAtMs: number;
}

/**
 * The newest incoming messages, `limits.incomingMessagesMax` of them. Rejects with `TransportError` (effect unknown,
 * safe to repeat) or `UnavailableError`.
 */
export interface IncomingMessages {
  /** Resolves when they are on disk, with the number of new ones: a message is recorded once while it is kept. */
  record(messages: readonly IncomingMessage[]): Promise<number>;
  /** Returns a page of messages, newest first. */
  page(cursor: string | null, limit: number): Promise<Done<Page<ReceivedMessage>> | InvalidCursor>;
}
