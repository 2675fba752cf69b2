/** Whether a day such as 2026-06-30 is in the calendar: of 31 June, engines make 1 July. */
export function isCalendarDay(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).getUTCDate() === Number(date.slice(-2));
}
