export const DAY_MS = 24 * 60 * 60 * 1000;

export interface Days {
  readonly from: string;
  readonly to: string;
}

/** Yesterday and today in UTC, for queries about recent events: also right after midnight. */
export function recentDays(): Days {
  return { from: formatDay(Date.now() - DAY_MS), to: formatDay(Date.now()) };
}

/** The same as a query. */
export function recently(): string {
  const { from, to } = recentDays();
  return `from=${from}&to=${to}`;
}

/** The day in UTC: `2026-11-23`. */
export const formatDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);
