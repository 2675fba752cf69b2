import type { MessageTraits } from "./message-traits.ts";

/** One sign of spam and its score. */
export interface SpamRule {
  /** Capitals, digits and underscores. Senders see it and operators search for it, so its meaning never changes. */
  readonly name: string;
  /** Points above zero, with at most two decimals. */
  readonly score: number;
  /** One short sentence about the message, for its sender; without a full stop. */
  readonly description: string;
  /** Depends only on the message; takes time at most proportional to its length. */
  readonly matches: (message: MessageTraits) => boolean;
}
