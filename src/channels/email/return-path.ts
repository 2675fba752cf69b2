/**
 * The envelope sender of a job's e-mail: `b+<job_id>@host`, 38 characters before the `@` (64 are allowed, RFC 5321,
 * 4.5.3.1.1), the same in any case. A bounce that comes back to it names its job. A job id holds 74 random bits and is
 * known to the message's recipient alone, who can report a bounce of his own message and of no other.
 */
export function returnPathOf(jobId: string, host: string): string {
  return `b+${jobId}@${host}`;
}
