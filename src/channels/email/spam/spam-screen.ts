import { UnavailableError } from "../../../domain/errors.ts";
import { type Health, HealthWatch } from "../../../domain/health.ts";
import type { Outcome } from "../../../domain/jobs/outcome.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import type { ScoredMessage, SpamFilter } from "./spam.ts";

export interface SpamScreenOptions extends RuntimePorts {
  readonly filter: SpamFilter;
  /** A message with a higher score is refused. */
  readonly threshold: number;
}

/**
 * Decides by its score whether a message may be sent.
 *
 * S1. While the filter is unavailable, messages wait: they are neither sent unscored nor lost.
 * S2. Meanwhile one message at a time probes whether it is back; waiting messages do not delay other deliveries.
 */
export class SpamScreen {
  private readonly watch: HealthWatch;

  constructor(private readonly options: SpamScreenOptions) {
    const { clock, random, telemetry } = options;
    const messages = {
      down: "the spam filter does not answer: mail that it has to score waits",
      up: "the spam filter answers again",
    };
    const common = { clock, random, telemetry, messages, gauge: "spam_filter_up" };
    this.watch = new HealthWatch({ ...common, failuresMin: FAILURES_MIN, tryMsMax: TRY_MS_MAX });
  }

  health(): Health {
    return this.watch.health;
  }

  /** Scores the message; null if it may be sent. */
  async check(message: ScoredMessage, signal: AbortSignal): Promise<Outcome | null> {
    if (!this.watch.mayTry()) return WAITS;
    const { filter, threshold } = this.options;
    try {
      const { score, rules } = await filter.score(message, signal);
      this.watch.succeeded();
      if (score <= threshold) return null;
      return {
        kind: "failed",
        error: `the message looks like spam: it scores ${score}, and ${threshold} is the most that is sent`,
        detail: { spam_score: score, spam_rules: rules.map((rule) => ({ ...rule })) },
      };
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      // A cancelled request proves no failure of the filter.
      if (signal.aborted) this.watch.calledOff();
      else this.watch.failed(error.message);
      return WAITS;
    }
  }
}

/** Consecutive failures that count as an outage: a single message may be the cause of its own failure. */
const FAILURES_MIN = 3;
const TRY_MS_MAX = 5_000;
const WAITS: Outcome = { kind: "retry", why: "the spam filter does not answer", isUncounted: true, isUnsent: true };
