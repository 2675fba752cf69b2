import type { SpamVerdict, TriggeredRule } from "./spam.ts";

/** A job's result stores the rules: a few tell the sender what to change, a hundred would only take space. */
const RULES_MAX = 32;

/** Builds a verdict: rounds `score` to two decimals, drops rules without points, and sorts the rest by score. */
export function spamVerdict(score: number, rules: readonly TriggeredRule[]): SpamVerdict {
  return {
    score: rounded(score),
    rules: rules
      .map(({ rule, score: points, description }) => ({ rule, score: rounded(points), description }))
      .filter((each) => each.score !== 0)
      .sort((a, b) => b.score - a.score || (a.rule < b.rule ? -1 : 1))
      .slice(0, RULES_MAX),
  };
}

/** Rounds to two decimals. Never returns negative zero, which JSON would not preserve. */
function rounded(score: number): number {
  return Math.round(score * 100) / 100 + 0;
}
