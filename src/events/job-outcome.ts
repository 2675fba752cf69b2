import { type DeliveryEvent, type EventType, eventTimeMs } from "../domain/jobs/event.ts";
import type { JobStatus } from "../domain/jobs/job.ts";
import type { LaterEvents } from "../domain/jobs/job-search.ts";
import { enumSchema } from "../http/schemas.ts";

/**
 * The outcome of a message. A status ends with its hand-over to the mail server or provider; an outcome also includes later
 * reports. `failed_later`: accepted, then given up without a bounce.
 */
export const JOB_OUTCOMES = [
  "pending",
  "running",
  "sent",
  "delivered",
  "bounced",
  "complained",
  "failed_later",
  "failed",
  "suppressed",
] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

export const OutcomeSchema = enumSchema(
  JOB_OUTCOMES,
  "The outcome, as far as it is known: a job with the status `success` is `sent`, or as reported after that " +
    "(`failed_later`: it was accepted, and then given up). For a message with copies, the outcome of its `to_address`.",
);

/** The first reported type in this order counts. */
const REPORTED: readonly (readonly [EventType, JobOutcome])[] = [
  ["bounced", "bounced"],
  ["failed", "failed_later"],
  ["complained", "complained"],
  ["delivered", "delivered"],
  ["read", "delivered"],
];

export const REPORTED_TYPES: readonly EventType[] = REPORTED.map(([type]) => type);

/** `later`: the types of the events after the one that ended the job. */
export function toOutcome(status: JobStatus, later: readonly EventType[]): JobOutcome {
  if (status !== "success") return status;
  return REPORTED.find(([type]) => later.includes(type))?.[1] ?? "sent";
}

const ENDS: ReadonlySet<EventType> = new Set(["sent", "failed", "suppressed"]);

/** The event that ended a job's present life, which began with the event `began`. */
export function findEnd(events: readonly DeliveryEvent[], began = 0): DeliveryEvent | null {
  return events.find(({ type, eventId }) => eventId > began && ENDS.has(type)) ?? null;
}

/** The types of the events after a job's end that are about its main recipient. */
export function typesAfterEnd(events: readonly DeliveryEvent[], began = 0): readonly EventType[] {
  const end = findEnd(events, began);
  if (end === null) return [];
  return events
    .filter(({ eventId, result }) => eventId > end.eventId && result["recipient"] === undefined)
    .map(({ type }) => type);
}

/** Returns the end of a finished job, Unix time in ms. */
export function endTimeMs(events: readonly DeliveryEvent[], began: number): number | null {
  const end = findEnd(events, began);
  return end === null ? null : eventTimeMs(end.eventId);
}

/** A job's fields in a list. */
interface Listed {
  readonly tenantId: string;
  readonly jobId: string;
  readonly status: JobStatus;
  readonly endEventId: number | null;
  readonly later: readonly EventType[];
}

/** A page of jobs with their outcomes. Rejects with `UnavailableError`. */
export async function withOutcomes<J extends Listed>(
  store: LaterEvents,
  jobs: readonly J[],
): Promise<readonly { readonly job: J; readonly outcome: JobOutcome }[]> {
  const stored = jobs.flatMap(({ tenantId, jobId, status, endEventId }) =>
    status === "success" && endEventId !== null ? [{ tenantId, jobId, endEventId }] : [],
  );
  const later = stored.length === 0 ? new Map<string, readonly EventType[]>() : await store.laterEvents(stored);
  return jobs.map((job) => ({ job, outcome: toOutcome(job.status, later.get(job.jobId) ?? job.later) }));
}
