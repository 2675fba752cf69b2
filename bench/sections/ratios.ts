import { median, round } from "../load/latency.ts";

/** One ratio a round: what was measured next to each other is compared with each other. */
export function ratiosOf<T>(ours: readonly T[], theirs: readonly T[], valueOf: (one: T) => number): number[] {
  return ours.flatMap((one, i) => {
    const other = theirs[i];
    return other === undefined ? [] : [round(valueOf(one) / valueOf(other))];
  });
}

export function describeRatios(ratios: readonly number[]): string {
  return `${round(median(ratios))}x [${Math.min(...ratios)} .. ${Math.max(...ratios)}]`;
}
