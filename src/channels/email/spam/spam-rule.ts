import type { MessageTraits } from "./message-traits.ts";

/** One sign of spam, and what it is worth. */
export interface SpamRule {
  /** Capitals, digits and underscores; what senders see and operators search for, so it is never given another meaning. */
  readonly name: string;
  /** Points, two decimals at most, above zero. */
  readonly score: number;
  /** One short sentence about the message, for its sender; without a full stop. */
  readonly description: string;
  /** Looks at the message alone, takes time proportional to its length at most. */
  readonly matches: (message: MessageTraits) => boolean;
}
