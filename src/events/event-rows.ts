import type { StoredEventRow } from "../domain/jobs/event-store.ts";
import { failureClassOfEvent, failureClassOfTry } from "../domain/jobs/failure-class.ts";
import type { Attempt, ChannelName } from "../domain/jobs/job.ts";
import { tagText } from "../domain/jobs/tags.ts";
import { NO_RECIPIENT, type RecipientIndex, recipientDomain } from "../domain/tenants/recipient-index.ts";

/** The columns inserted into `events`, in the order of `eventValues`. */
export const EVENT_COLUMNS = [
  "tenant_id",
  "event_id",
  "job_id",
  "channel",
  "event_type",
  "result",
  "failure_class",
  "occurred_at",
] as const;

export function eventValues(row: StoredEventRow): readonly (string | number | null)[] {
  const { tenantId, eventId, jobId, channel, type, result, occurredAtMs } = row;
  const occurredAt = occurredAtMs === undefined ? null : timeText(occurredAtMs);
  const failureClass = failureClassOfEvent(row) ?? "";
  return [tenantId, eventId, jobId, channel, type, JSON.stringify(result), failureClass, occurredAt];
}

/** The columns inserted into `jobs`, in the order of `jobValues`. */
export const JOB_COLUMNS = [
  "tenant_id",
  "job_id",
  "channel",
  "status",
  "attempts",
  "result",
  "version",
  "template",
  "recipient_hash",
  "recipient_domain",
  "attempts_log",
  "began",
  "tags",
] as const;

/** Returns the columns, or null if the row did not end its job. Without `recipients`, the recipient is not stored. */
export function jobValues(row: StoredEventRow, recipients: RecipientIndex | null): readonly unknown[] | null {
  const { tenantId, jobId, channel, finished, eventId } = row;
  if (finished === null) return null;
  const { status, attempts, result, template = "", recipient = "", tries = [], began = 0, tags = [] } = finished;
  const hash = recipient === "" || recipients === null ? NO_RECIPIENT : recipients.hashRecipient(recipient);
  const state = [tenantId, jobId, channel, status, attempts, JSON.stringify(result), eventId, template];
  const log = JSON.stringify(tries.map((each) => classified(channel, each)));
  return [...state, hash, recipientDomain(recipient), log, began, tags.map(tagText)];
}

function classified(channel: ChannelName, attempt: Attempt): Attempt {
  const failureClass = failureClassOfTry(channel, attempt);
  return failureClass === null ? attempt : { ...attempt, class: failureClass };
}

/** As ClickHouse reads a time in UTC. */
function timeText(unixMs: number): string {
  return new Date(unixMs).toISOString().replace("T", " ").slice(0, 23);
}
