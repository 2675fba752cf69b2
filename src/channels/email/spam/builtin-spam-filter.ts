import { LINK_RULES } from "./link-rules.ts";
import { MARKUP_RULES } from "./markup-rules.ts";
import { messageTraits } from "./message-traits.ts";
import type { ScoredMessage, SpamFilter, SpamVerdict } from "./spam.ts";
import type { SpamRule } from "./spam-rule.ts";
import { spamVerdict } from "./spam-verdict.ts";
import { SUBJECT_RULES } from "./subject-rules.ts";
import { WORDING_RULES } from "./wording-rules.ts";

/** All rules of the built-in filter. Each depends only on the message, so their order does not matter. */
export const SPAM_RULES: readonly SpamRule[] = [...SUBJECT_RULES, ...WORDING_RULES, ...LINK_RULES, ...MARKUP_RULES];

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
