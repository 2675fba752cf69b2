import { UnavailableError } from "../../../core/errors.ts";
import type { Outcome } from "../../../core/outcome.ts";
import type { ScoredMessage, SpamFilter } from "../../../core/spam.ts";

export interface SpamScreenOptions {
  readonly filter: SpamFilter;
  /** Above it a message is refused. */
  readonly threshold: number;
}

/** Decides by its score whether a message may be handed over. */
export class SpamScreen {
  constructor(private readonly options: SpamScreenOptions) {}

  /** Null: it may. While the filter is away the message waits: it is neither sent unscored nor lost. */
  async check(message: ScoredMessage, signal: AbortSignal): Promise<Outcome | null> {
    const { filter, threshold } = this.options;
    try {
      const { score, rules } = await filter.score(message, signal);
      if (score <= threshold) return null;
      return {
        kind: "failed",
        error: `the message looks like spam: it scores ${score}, and ${threshold} is the most that is sent`,
        detail: { spam_score: score, spam_rules: rules.map((rule) => ({ ...rule })) },
      };
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return { kind: "retry", why: "the spam filter does not answer", isUncounted: true };
    }
  }
}
