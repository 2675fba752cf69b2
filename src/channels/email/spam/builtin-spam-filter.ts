import { messageTraits } from "./message-traits.ts";
import type { ScoredMessage, SpamFilter, SpamVerdict } from "./spam.ts";
import type { SpamRule } from "./spam-rule.ts";
import { SPAM_RULES } from "./spam-rules.ts";
import { spamVerdict } from "./spam-verdict.ts";

/**
 * Scores messages by a fixed set of rules (`docs/spam-rules.md`), modelled on SpamAssassin's rules for bodies and
 * subjects. It calls no service and keeps no state: a message always gets the same verdict, and scoring never fails.
 */
export class BuiltinSpamFilter implements SpamFilter {
  constructor(private readonly rules: readonly SpamRule[] = SPAM_RULES) {}

  async score(message: Omit<ScoredMessage, "raw">): Promise<SpamVerdict> {
    const traits = messageTraits(message);
    const triggered = this.rules.filter((rule) => rule.matches(traits));
    // In hundredths of a point, because sums of fractions depend on their order.
    const hundredths = triggered.reduce((sum, { score }) => sum + Math.round(score * 100), 0);
    return spamVerdict(
      hundredths / 100,
      triggered.map(({ name, score, description }) => ({ rule: name, score, description })),
    );
  }
}
