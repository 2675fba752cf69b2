/** ISO 8601 UTC in whole seconds, as the API shows times: `YYYY-MM-DDTHH:MM:SSZ`. */
export function isoTime(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
