import { median, round } from "../load/latency.ts";

/** One ratio per round: compares figures measured next to each other. */
export function computeRatios<T>(ours: readonly T[], theirs: readonly T[], valueOf: (one: T) => number): number[] {
  return ours.flatMap((one, i) => {
    const other = theirs[i];
    return other === undefined ? [] : [round(valueOf(one) / valueOf(other))];
  });
}

export function describeRatios(ratios: readonly number[]): string {
  return `${round(median(ratios))}x [${Math.min(...ratios)} .. ${Math.max(...ratios)}]`;
}
