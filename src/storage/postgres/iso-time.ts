/** Formats a time as the API does: ISO 8601 UTC in whole seconds, `YYYY-MM-DDTHH:MM:SSZ`. */
export function isoTime(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
