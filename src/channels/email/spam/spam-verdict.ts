import type { SpamVerdict, TriggeredRule } from "./spam.ts";

/** A job's result holds the rules: a handful tells the sender what to change, a hundred would be a burden to keep. */
const RULES_MAX = 32;

/** Puts a verdict into its form: `score` rounded to two decimals, the rules without the silent ones, highest first. */
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

/** To two decimals, and never the negative zero, which JSON would not bring back. */
function rounded(score: number): number {
  return Math.round(score * 100) / 100 + 0;
}
