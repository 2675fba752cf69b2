/**
 * The envelope sender of a job's e-mail: `b+<job_id>@host`, 38 characters before the `@` (RFC 5321, 4.5.3.1.1 allows
 * 64), case-insensitive. A bounce sent to it identifies its job. A job id holds 74 random bits and is known only to the
 * message's recipient, who can report a bounce of that message and of no other.
 */
export function returnPathOf(jobId: string, host: string): string {
  return `b+${jobId}@${host}`;
}
