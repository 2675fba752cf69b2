import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { TransportError } from "../../domain/errors.ts";
import { isJobId } from "../../domain/ids.ts";
import { FAILURE_CLASSES, type FailureClass } from "../../domain/jobs/failure-class.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { FinishedJobs, JobFilter, QueuedJobs } from "../../domain/jobs/job-search.ts";
import type { JobRetries, RetryOutcome } from "../../domain/jobs/retry.ts";
import { normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";
import { ApiError, about } from "../../http/api-error.ts";
import type { ContentKind } from "../../http/content-kind.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { failure, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { NextCursor, Uuid } from "../../http/schemas.ts";
import { invalidCursor, noSuch } from "../../http/store-results.ts";
import { parseMoment } from "../day-range.ts";
import { findJobs, jobIdRange } from "../find-jobs.ts";
import { EXAMPLE_JOB_ID } from "./answer-schemas.ts";
import { jobIdParameter, requireTenant } from "./operator-job-endpoints.ts";

export interface RetryPorts {
  readonly queue: QueuedJobs;
  readonly finishedJobs: FinishedJobs;
  readonly directory: Pick<TenantDirectory, "byId">;
  readonly retries: JobRetries;
}

/** The most jobs that one call retries. */
const BULK_MAX = 1_000;

const NOT_KEPT = "its content is no longer kept";
const WHY_NOT: Readonly<Record<Exclude<RetryOutcome["kind"], "retried" | "refused" | "unknown">, string>> = {
  not_failed: "the job has not failed: only failed jobs can be tried again",
  not_kept: `the job cannot be tried again: ${NOT_KEPT}`,
  jobs: "the tenant's share of the queue is used up: it has as many unfinished jobs as its plan allows",
  bytes: "the tenant's share of the queue is used up: its unfinished jobs have as many bytes as its plan allows",
};
const UNKNOWN_EFFECT = "it is not known whether the job was queued: look at its status and try again";

/** Retries of failed jobs, singly or in bulk, and a job's content. */
export function retryEndpoints(
  ports: RetryPorts,
  channels: readonly ChannelName[],
  kinds: readonly ContentKind[],
): readonly Endpoint[] {
  return [retryJob(ports), retryJobs(ports, channels), getJobContent(ports, kinds)];
}

function retryJob(ports: RetryPorts): Endpoint {
  return operatorEndpoint({
    method: "POST",
    path: "/dash/api/tenants/:id/jobs/:job_id/retry",
    name: "operator",
    operation: "retryJob",
    tag: "Jobs",
    summary: "Try a failed job again",
    description:
      "Under the same id, with the list of its earlier tries. Its content is kept for seven days after its failure, if " +
      "it is not too large. A wallet pass costs its token again, and so does one that a message carries.",
    params: { id: tenantIdParameter, job_id: jobIdParameter },
    answers: {
      202: {
        description: "It is queued again.",
        schema: Type.Object({ job_id: Uuid, status: Type.Literal("pending") }, { $id: "RetriedJob" }),
        examples: [{ job_id: EXAMPLE_JOB_ID, status: "pending" }],
      },
    },
    fails: {
      404: OPERATOR_NOT_FOUND,
      409: failure("JobNotRetried", "It has not failed, or it cannot be tried again.", WHY_NOT.not_failed),
    },
    async handle({ params: { id, job_id } }) {
      const tenant = await requireTenant(ports, id);
      const outcome = (await retried(ports, tenant, [job_id])).get(job_id) ?? { kind: "unknown" };
      switch (outcome.kind) {
        case "retried":
          return reply(202, { job_id, status: "pending" });
        case "unknown":
          throw noSuch("job");
        case "refused":
          throw new ApiError("job_state", `the job cannot be tried again: ${outcome.why}`);
        default:
          throw new ApiError(409, WHY_NOT[outcome.kind]);
      }
    },
  });
}

async function retried({ retries }: RetryPorts, tenant: Tenant, jobIds: readonly string[]) {
  try {
    return await retries.retry(tenant, jobIds);
  } catch (error) {
    if (error instanceof TransportError) throw new ApiError("outcome_unknown", UNKNOWN_EFFECT);
    throw error;
  }
}

const Moment = (description: string) =>
  Type.String({ description: `${description} A UTC day or a time (RFC 3339).`, examples: ["2026-11-21"] });

function retryBodySchema(channels: readonly ChannelName[]) {
  const Filter = Type.Object(
    {
      channel: Type.Optional(Type.Union(channels.map((name) => Type.Literal(name)))),
      recipient: Type.Optional(Type.String({ description: "E-mail address or phone number." })),
      template: Type.Optional(Type.String()),
      failure_class: Type.Optional(
        Type.Union(
          FAILURE_CLASSES.map((name) => Type.Literal(name)),
          { description: `one of ${FAILURE_CLASSES.join(", ")}` },
        ),
      ),
      from: Type.Optional(Moment("Accepted at this time or later.")),
      to: Type.Optional(Moment("Accepted before the end of this day, or at this time or earlier.")),
    },
    { additionalProperties: false },
  );
  return Type.Object(
    {
      filter: Filter,
      dry_run: Type.Optional(Type.Boolean({ description: "Only count them." })),
      cursor: Type.Optional(Type.Union([Uuid, Type.Null()], { description: "The `next_cursor` of the call before." })),
    },
    { additionalProperties: false, examples: [{ filter: { channel: "email", from: "2026-11-21" } }] },
  );
}

const RETRIED_JOBS = Type.Object(
  {
    retried: Type.Integer(),
    skipped: Type.Integer({
      description: "Their content is not kept, they cannot be paid, or they are not failed any more.",
    }),
    next_cursor: NextCursor,
  },
  { $id: "RetriedJobs" },
);

function retryJobs(ports: RetryPorts, channels: readonly ChannelName[]): Endpoint {
  return operatorEndpoint({
    method: "POST",
    path: "/dash/api/tenants/:id/jobs/retry",
    name: "operator",
    operation: "retryJobs",
    tag: "Jobs",
    summary: "Try failed jobs again",
    description: `The newest first, at most ${BULK_MAX} a call: go on with \`next_cursor\` until it is null.`,
    params: { id: tenantIdParameter },
    body: retryBodySchema(channels),
    audit: { body: ["dry_run", "cursor"], answer: ["count", "retried", "skipped"] },
    answers: {
      200: {
        description: "How many there are (`dry_run`).",
        schema: Type.Object({ count: Type.Integer() }, { $id: "RetryCount" }),
        examples: [{ count: 1042 }],
      },
      202: {
        description: "They are queued again, as far as it was possible.",
        schema: RETRIED_JOBS,
        examples: [{ retried: 998, skipped: 2, next_cursor: EXAMPLE_JOB_ID }],
      },
    },
    fails: {
      404: OPERATOR_NOT_FOUND,
      409: failure("JobsNotRetried", "None of them finds room in the queue.", WHY_NOT.jobs),
    },
    async handle({ params: { id }, body }) {
      const tenant = await requireTenant(ports, id);
      const filter = toFilter(body.filter, body.cursor ?? null);
      const page = await findJobs(ports, tenant, filter, BULK_MAX);
      if (body.dry_run === true) {
        const isAll = page.moreBelow === null;
        return reply(200, { count: isAll ? page.jobs.length : await ports.finishedJobs.count(id, filter) });
      }
      const ids = page.jobs.map(({ jobId }) => jobId);
      return reply(202, summed(ids, await retried(ports, tenant, ids), page.moreBelow));
    },
  });
}

/**
 * Sums up the outcomes. Jobs that do not fit into the queue come again with the next call. Throws an `ApiError` 409 if none
 * fits.
 */
function summed(ids: readonly string[], outcomes: ReadonlyMap<string, RetryOutcome>, next: string | null) {
  const kinds = ids.map((jobId) => outcomes.get(jobId)?.kind ?? "unknown");
  const full = kinds.findIndex((kind) => kind === "jobs" || kind === "bytes");
  const handled = full === -1 ? kinds : kinds.slice(0, full);
  const count = kinds.filter((kind) => kind === "retried").length;
  if (full !== -1 && count === 0) throw new ApiError(409, kinds[full] === "jobs" ? WHY_NOT.jobs : WHY_NOT.bytes);
  const skipped = handled.filter((kind) => kind !== "retried").length;
  // A list goes on below its cursor, so the job that did not fit is the first one again.
  const next_cursor = full === -1 ? next : above(ids[full] ?? "");
  return { retried: count, skipped, next_cursor };
}

/** The id right above this one, in their order. */
function above(jobId: string): string {
  const digits = (BigInt(`0x${jobId.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

interface GivenFilter {
  readonly channel?: string | undefined;
  readonly recipient?: string | undefined;
  readonly template?: string | undefined;
  readonly failure_class?: FailureClass | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

function toFilter(
  { channel, recipient, template, failure_class, from, to }: GivenFilter,
  cursor: string | null,
): JobFilter {
  if (cursor !== null && !isJobId(cursor)) {
    throw invalidCursor();
  }
  const fromMs = from === undefined ? null : readMoment("from", from);
  const beforeMs = to === undefined ? null : readMoment("to", to);
  if (fromMs !== null && beforeMs !== null && beforeMs <= fromMs) {
    throw new ApiError(about("filter.to"), 'The time "to" must not be before "from".');
  }
  return {
    tag: null,
    status: "failed",
    channel: channel ?? null,
    recipient: recipient === undefined ? null : normalisedRecipient(recipient),
    template: template ?? null,
    failureClass: failure_class ?? null,
    ...jobIdRange({ fromMs, beforeMs, cursor }),
  };
}

/** Throws an `ApiError` 400 that names the member. */
function readMoment(name: "from" | "to", text: string): number {
  const unixMs = parseMoment(text, name === "to");
  if (unixMs !== null) return unixMs;
  throw new ApiError(
    about(`filter.${name}`),
    `The field "filter.${name}" must be a day (YYYY-MM-DD) or a time such as 2026-11-21T07:30:00Z.`,
  );
}

function getJobContent(ports: RetryPorts, kinds: readonly ContentKind[]): Endpoint {
  const schemas: readonly TSchema[] = kinds.map(({ schema }) => schema);
  const Content = Type.Union([...schemas], { $id: "JobContent" });
  const [first] = kinds;
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/tenants/:id/jobs/:job_id/content",
    name: "operator",
    operation: "getJobContent",
    tag: "Jobs",
    summary: "Show a job's content",
    description:
      "For an unfinished job, or one that failed in the last seven days, as it would be sent now. It is personal data: the " +
      "call needs the role `write`, and is audited.",
    effect: "change",
    params: { id: tenantIdParameter, job_id: jobIdParameter },
    answers: { 200: { description: "Its content.", schema: Content, ...(first && { examples: [first.example] }) } },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id, job_id } }) {
      const tenant = await requireTenant(ports, id);
      const content = await ports.retries.findContent(tenant, job_id);
      const kind = kinds.find(({ channel }) => channel === content?.channel);
      const shown = content === null ? null : ((await kind?.show(tenant, content.payload)) ?? null);
      if (shown === null)
        throw new ApiError("no_such_file", `there is no content of such a job: ${NOT_KEPT}, or it was sent`);
      // Each kind returns content that matches its schema.
      return reply(200, shown as Static<typeof Content>);
    },
  });
}
