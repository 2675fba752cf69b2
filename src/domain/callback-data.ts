import type { JobAddress } from "./queue.ts";

/** A chat message that was handed over, and the number that it was sent from. */
export interface SentMessage extends JobAddress {
  readonly phoneNumberId: string;
}

/** Makes what the chat provider repeats in every status of a message, and says whose message it is. */
export interface CallbackSigner {
  /** The same message always has the same text. */
  sign(message: SentMessage): string;
}

export interface CallbackReader {
  /** The message that was signed, or null: nobody of ours wrote this. */
  read(text: string): SentMessage | null;
}
