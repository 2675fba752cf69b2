import type { JobAddress } from "./queue.ts";

/** A chat message that was handed over, and the number that sent it. */
export interface SentMessage extends JobAddress {
  readonly phoneNumberId: string;
}

/** Creates the text that the chat provider repeats in every status of a message, and identifies the message by it. */
export interface CallbackSigner {
  /** The same message always has the same text. */
  sign(message: SentMessage): string;
}

export interface CallbackReader {
  /** The message that was signed, or null: this service did not sign the text. */
  read(text: string): SentMessage | null;
}
