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
 * Who wrote to which number, and when last: the provider takes free text for a while after that. Remembered for
 * `limits.writersKeptMs`, of each number for the `limits.writersMax` who wrote last: a person counts by number and by id. Rejects with
 * `TransportError` (effect unknown, safe to repeat) or `UnavailableError`.
 */
export interface ReplyWindows {
  /** Resolves when they are on disk. In any order, and repeatedly: a person's latest message counts. */
  note(messages: readonly WrittenTo[]): Promise<void>;
  /** When one of these people last wrote to the number, in unix milliseconds; null: not that is remembered. */
  lastWrittenMs(phoneNumberId: string, from: readonly string[]): Promise<number | null>;
}
