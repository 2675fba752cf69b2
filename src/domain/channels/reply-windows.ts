/** A person's message to one of the sending numbers. */
export interface WrittenTo {
  /** The provider's id of the number. */
  readonly phoneNumberId: string;
  /** Digits of the writer's number, or the provider's id of the writer. */
  readonly from: string;
  /** Unix milliseconds; null: now. */
  readonly writtenAtMs: number | null;
}

/**
 * The time of each person's last message to each number: for a while after it, the provider accepts free text. Kept for
 * `limits.writersKeptMs`, for the `limits.writersMax` latest writers of each number; a person counts twice, by number
 * and by id. Rejects with `TransportError` (effect unknown, safe to repeat) or `UnavailableError`.
 */
export interface ReplyWindows {
  /** Resolves when they are on disk. Order and repetition do not matter: a person's latest message counts. */
  note(messages: readonly WrittenTo[]): Promise<void>;
  /**
   * Returns when one of these people last wrote to the number, in unix milliseconds; null: no such message is
   * remembered.
   */
  lastWrittenMs(phoneNumberId: string, from: readonly string[]): Promise<number | null>;
}
