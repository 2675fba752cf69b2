/** Whether a day such as 2026-06-30 is in the calendar. JavaScript engines turn 31 June into 1 July. */
export function isCalendarDay(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).getUTCDate() === Number(date.slice(-2));
}
