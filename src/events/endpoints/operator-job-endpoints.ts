import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { isJobId } from "../../domain/ids.ts";
import type { EventReader } from "../../domain/jobs/event-store.ts";
import { FAILURE_CLASSES, failureClassOfTry } from "../../domain/jobs/failure-class.ts";
import { type Attempt, type ChannelName, isFinal, JOB_STATUSES } from "../../domain/jobs/job.ts";
import type { FinishedJobs, JobFilter, LaterEvents, QueuedJobs } from "../../domain/jobs/job-search.ts";
import { normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import {
  limitParameter,
  type PathParameter,
  type QueryParameter,
  queryChoice,
  queryText,
  tenantIdParameter,
} from "../../http/parameters.ts";
import { enumSchema, NextCursor, Timestamp, Uuid } from "../../http/schemas.ts";
import { invalidCursor, noSuch } from "../../http/store-results.ts";
import { momentParameter, requireMoments } from "../day-range.ts";
import { type FoundJob, findJobs, foundEnded, foundFinished, foundQueued, jobIdRange } from "../find-jobs.ts";
import { OutcomeSchema, toOutcome, typesAfterEnd, withOutcomes } from "../job-outcome.ts";
import { EXAMPLE_EVENT, EXAMPLE_JOB_ID, JobEvents, JobResult, shownJobEvent } from "./answer-schemas.ts";

export interface OperatorJobPorts {
  readonly queue: QueuedJobs;
  readonly eventStore: Pick<EventReader, "job">;
  readonly finishedJobs: FinishedJobs & LaterEvents;
  readonly directory: Pick<TenantDirectory, "byId">;
}

/** A job's members in a list. */
export const jobMembers = (channels: readonly ChannelName[]) => ({
  job_id: Uuid,
  channel: enumSchema(channels),
  status: enumSchema(JOB_STATUSES),
  attempts: Type.Integer({
    description: "Tries that have ended and count, the last one included; a retry by an operator starts again at zero.",
  }),
  created_at: Timestamp,
  finished_at: Type.Optional(Timestamp),
  next_attempt_at: Type.Optional(Type.String({ format: "date-time", description: "It waits for this try." })),
  error: Type.Optional(Type.String({ description: "Why it failed, as the tenant sees it." })),
  failure_class: Type.Optional(enumSchema(FAILURE_CLASSES, "Why it failed, in one word for programs.")),
  template: Type.Optional(Type.String({ description: "The template that it was made from." })),
  recipient_domain: Type.Optional(Type.String({ description: "For an e-mail: the part after the @." })),
  tags: Type.Optional(
    Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
      description: "As it was sent with them.",
    }),
  ),
});

export const JobAttempt = Type.Object(
  {
    at: Timestamp,
    outcome: enumSchema(
      ["retry", "snooze", "uncertain", "sent", "failed"] as const,
      "A snooze was a wait that cost no attempt. After an uncertain one it is unknown whether the mail server or provider has the " +
        "message: it had all of it and did not answer.",
    ),
    relay: Type.Optional(Type.String({ description: "The mail server or provider that was asked." })),
    reply: Type.Optional(Type.String({ description: "The reply, without the recipient; or why it was not asked." })),
    ms: Type.Optional(Type.Integer({ description: "How long it took, in milliseconds." })),
    failure_class: Type.Optional(enumSchema(FAILURE_CLASSES, "Why it did not succeed.")),
    next_attempt_at: Type.Optional(Timestamp),
  },
  { $id: "JobAttempt" },
);

export const EXAMPLE_JOB = {
  job_id: EXAMPLE_JOB_ID,
  channel: "email",
  status: "failed",
  attempts: 2,
  created_at: "2026-11-21T07:29:40Z",
  finished_at: "2026-11-21T07:30:00Z",
  error: "the mail server refused the message: 550 5.1.1 no such user",
  failure_class: "recipient",
  template: "welcome",
  recipient_domain: "example.com",
} as const;

export const jobIdParameter: PathParameter<string> = {
  description: "A job's id.",
  example: EXAMPLE_JOB_ID,
  read(text) {
    const id = text?.toLowerCase() ?? "";
    if (!isJobId(id)) throw noSuch("job");
    return id;
  },
};

export const jobCursor: QueryParameter<string | null> = {
  description: "The `next_cursor` of the previous page.",
  schema: Type.String({ format: "uuid" }),
  read(text) {
    if (text === undefined) return null;
    if (!isJobId(text)) throw invalidCursor();
    return text;
  },
};

const TAG_TEXT = /^[A-Za-z0-9_-]{1,256}:[A-Za-z0-9_-]{1,256}$/;

const jobTag: QueryParameter<string | null> = {
  description: "Only with this tag, as `name:value`.",
  schema: Type.String({ pattern: TAG_TEXT.source }),
  example: "campaign:spring",
  read(text) {
    if (text === undefined) return null;
    if (!TAG_TEXT.test(text)) throw new ApiError(400, "tag must be a name and a value, as in campaign:spring");
    return text;
  },
};

/** The filters of a tenant's list of jobs. */
export const jobListQuery = (channels: readonly ChannelName[]) => ({
  status: queryChoice("status", JOB_STATUSES, { description: "Only this status.", absent: null }),
  channel: queryChoice("channel", channels, { description: "Only this channel.", absent: null }),
  recipient: queryText("Only to this e-mail address or phone number."),
  template: queryText("Only from this template."),
  tag: jobTag,
  failure_class: queryChoice("failure_class", FAILURE_CLASSES, {
    description: "Only those that failed, or bounced, for this reason.",
    absent: null,
  }),
  from: momentParameter("from", "Accepted at this time or later.", "2026-11-01"),
  to: momentParameter("to", "Accepted before the end of this day, or at this time or earlier.", "2026-11-21"),
  cursor: jobCursor,
  limit: limitParameter,
});

type ListQuery = {
  readonly [N in keyof ReturnType<typeof jobListQuery>]: ReturnType<ReturnType<typeof jobListQuery>[N]["read"]>;
};

/** Builds the filter from the parameters. Throws an `ApiError` 400 for a range that ends before it begins. */
export function toJobFilter(query: Omit<ListQuery, "limit">): JobFilter {
  const { status, channel, template, tag, failure_class: failureClass, recipient, from, to, cursor } = query;
  requireMoments(from ?? 0, to ?? Number.MAX_SAFE_INTEGER);
  return {
    status,
    channel,
    template,
    tag,
    failureClass,
    recipient: recipient === null ? null : normalisedRecipient(recipient),
    ...jobIdRange({ fromMs: from, beforeMs: to, cursor }),
  };
}

/** A page of a list of jobs. */
export function jobPageSchema<J extends TSchema>(job: J, $id: string) {
  return Type.Object(
    {
      jobs: Type.Array(job),
      next_cursor: NextCursor,
      incomplete: Type.Boolean({
        description: "More jobs are waiting in the queue than are looked through: older ones may be missing.",
      }),
    },
    { $id },
  );
}

/** `/dash/api/tenants/{id}/jobs`: a tenant's jobs in queue and event store, and the history of each. */
export function operatorJobEndpoints(ports: OperatorJobPorts, channels: readonly ChannelName[]): readonly Endpoint[] {
  return [listJobs(ports, channels), getJobHistory(ports, channels)];
}

function listJobs(ports: OperatorJobPorts, channels: readonly ChannelName[]): Endpoint {
  const Job = Type.Object({ ...jobMembers(channels), outcome: OutcomeSchema }, { $id: "OperatorJob" });
  const Page = jobPageSchema(Job, "OperatorJobPage");
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/tenants/:id/jobs",
    name: "operator",
    operation: "listJobs",
    tag: "Jobs",
    summary: "A tenant's jobs, newest first",
    description: "Unfinished and finished ones. A job is on one page only, even if it ends meanwhile.",
    params: { id: tenantIdParameter },
    query: jobListQuery(channels),
    answers: {
      200: {
        description: "One page.",
        schema: Page,
        examples: [{ jobs: [{ ...EXAMPLE_JOB, outcome: "failed" }], next_cursor: null, incomplete: false }],
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id }, query }) {
      const tenant = await requireTenant(ports, id);
      const page = await findJobs(ports, tenant, toJobFilter(query), query.limit);
      const own = page.jobs.map((job) => ({ ...job, tenantId: id }));
      const judged = await withOutcomes(ports.finishedJobs, own);
      const jobs = judged.map(({ job, outcome }) => ({ ...shownJob(job), outcome }));
      return reply(200, { jobs, next_cursor: page.moreBelow, incomplete: page.isIncomplete });
    },
  });
}

function getJobHistory(ports: OperatorJobPorts, channels: readonly ChannelName[]): Endpoint {
  const History = Type.Object(
    {
      ...jobMembers(channels),
      outcome: OutcomeSchema,
      result: Type.Optional(JobResult),
      history: Type.Array(JobAttempt, { description: "The latest tries, oldest first; at most 20." }),
      events: JobEvents.properties.events,
    },
    { $id: "JobHistory" },
  );
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/tenants/:id/jobs/:job_id",
    name: "operator",
    operation: "getJobHistory",
    tag: "Jobs",
    summary: "A job with its tries and events",
    params: { id: tenantIdParameter, job_id: jobIdParameter },
    answers: {
      200: {
        description: "The job.",
        schema: History,
        examples: [
          {
            ...EXAMPLE_JOB,
            outcome: "failed",
            result: { error: EXAMPLE_JOB.error },
            history: [
              {
                at: "2026-11-21T07:29:41Z",
                outcome: "retry",
                relay: "mx.example.com:25",
                reply: "451 4.7.1 try again later",
                next_attempt_at: "2026-11-21T07:29:59Z",
              },
            ],
            events: [EXAMPLE_EVENT],
          },
        ],
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id, job_id: job } }) {
      const tenant = await requireTenant(ports, id);
      const found = await readHistory(ports, tenant, job);
      if (found === null) throw noSuch("job");
      const { job: summary, result, tries, events, began } = found;
      // The code that finished the job stored the result that belongs to its status.
      const ended = result === null ? {} : { result: result as Static<typeof JobResult> };
      const shown = {
        outcome: toOutcome(summary.status, typesAfterEnd(events, began)),
        history: tries.map((each) => shownAttempt(summary.channel, each)),
        events: events.map(shownJobEvent),
      };
      return reply(200, { ...shownJob(summary), ...ended, ...shown });
    },
  });
}

/** Reads the queue first: its state is newer. Only the event store has the try that ended a job. */
async function readHistory({ queue, eventStore, finishedJobs }: OperatorJobPorts, tenant: Tenant, jobId: string) {
  const waiting = await queue.waitingJob(tenant, jobId);
  const record = await queue.job(tenant, jobId);
  if (record !== null && !isFinal(record.status)) {
    return {
      job: foundQueued(record, waiting),
      result: null,
      tries: record.tries ?? [],
      events: record.events,
      began: 0,
    };
  }
  const [stored, summary] = await Promise.all([
    eventStore.job(tenant.tenantId, jobId),
    finishedJobs.finishedJob(tenant.tenantId, jobId),
  ]);
  const latest = record ?? stored;
  if (latest === null) return null;
  // A job that was retried has ended again, and that is not recorded yet.
  const isNewer = record !== null && record.began !== stored?.began;
  const job = summary === null || isNewer ? foundEnded(latest, waiting) : foundFinished(summary);
  const { events, began } = latest;
  return { job, result: latest.result ?? {}, tries: stored?.tries ?? latest.tries ?? [], events, began };
}

export async function requireTenant({ directory }: Pick<OperatorJobPorts, "directory">, id: string): Promise<Tenant> {
  const tenant = await directory.byId(id);
  if (tenant === null) throw noSuch("tenant");
  return tenant;
}

export function shownJob(job: FoundJob) {
  const { jobId: job_id, channel, status, attempts, createdAtMs, finishedAtMs, nextAttemptMs } = job;
  return {
    job_id,
    channel,
    status,
    attempts,
    created_at: timeText(createdAtMs),
    ...(finishedAtMs !== null && { finished_at: timeText(finishedAtMs) }),
    ...(nextAttemptMs !== null && { next_attempt_at: timeText(nextAttemptMs) }),
    ...(job.error !== null && { error: job.error }),
    ...(job.failureClass !== null && { failure_class: job.failureClass }),
    ...(job.template !== "" && { template: job.template }),
    ...(job.recipientDomain !== "" && { recipient_domain: job.recipientDomain }),
    ...(job.tags.length > 0 && { tags: job.tags.map(({ name, value }) => ({ name, value })) }),
  };
}

export function shownAttempt(channel: ChannelName, attempt: Attempt): Static<typeof JobAttempt> {
  const { at, outcome, relay, reply: said, ms, next } = attempt;
  const failureClass = failureClassOfTry(channel, attempt);
  return {
    at: timeText(at),
    outcome,
    ...(relay !== undefined && { relay }),
    ...(said !== undefined && { reply: said }),
    ...(ms !== undefined && { ms }),
    ...(failureClass !== null && { failure_class: failureClass }),
    ...(next !== undefined && { next_attempt_at: timeText(next) }),
  };
}

export function timeText(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 19)}Z`;
}
