import { isJobId } from "../../domain/ids.ts";
import type { EventReader } from "../../domain/jobs/event-store.ts";
import type { JobRecord } from "../../domain/jobs/job.ts";
import type { FrontQueue } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { tenantFailure } from "../../http/failures.ts";
import type { PathParameter } from "../../http/parameters.ts";
import { noSuch } from "../../http/store-results.ts";
import { EXAMPLE_EVENT, EXAMPLE_JOB_ID, Job, JobEvents, shownJob, shownJobEvent } from "./answer-schemas.ts";

export interface JobPorts {
  readonly queue: Pick<FrontQueue, "job">;
  readonly eventStore: Pick<EventReader, "job">;
  /** Adds the parts of a job's result that its channel stores elsewhere. */
  completeResult(tenant: Tenant, job: JobRecord): Promise<JobRecord>;
}

export const jobIdOfTenant: PathParameter<string> = {
  description: "The job_id that the send answered.",
  example: EXAMPLE_JOB_ID,
  read: (text) => text?.toLowerCase() ?? "",
};

export const NO_SUCH_JOB = tenantFailure(
  "NoSuchJob",
  "There is no such job, or it belongs to another tenant.",
  "there is no such job",
);

/** `GET /v1/jobs/{job_id}` and `GET /v1/jobs/{job_id}/events`. */
export function jobEndpoints(ports: JobPorts): readonly Endpoint[] {
  return [
    tenantEndpoint({
      method: "GET",
      path: "/v1/jobs/:id",
      name: "job",
      operation: "getJob",
      tag: "Jobs",
      summary: "Show a job's status and result",
      params: { id: jobIdOfTenant },
      answers: {
        200: {
          description: "The job. One that is in progress has no result.",
          schema: Job,
          examples: {
            scheduled: {
              value: { job_id: EXAMPLE_JOB_ID, status: "pending", scheduled_at: "2026-11-21T09:30:00.000Z" },
            },
            running: { value: { job_id: EXAMPLE_JOB_ID, status: "running" } },
            success: { value: { job_id: EXAMPLE_JOB_ID, status: "success", result: {} } },
            failed: { value: { job_id: EXAMPLE_JOB_ID, status: "failed", result: { error: "550 5.7.1 refused" } } },
            suppressed: { value: { job_id: EXAMPLE_JOB_ID, status: "suppressed", result: { reason: "unsubscribed" } } },
          },
        },
      },
      fails: { 404: NO_SUCH_JOB },
      async handle({ tenant, params: { id } }) {
        const job = await find(ports, tenant, id);
        return reply(200, shownJob(await ports.completeResult(tenant, job)));
      },
    }),
    tenantEndpoint({
      method: "GET",
      path: "/v1/jobs/:id/events",
      name: "job_events",
      operation: "getJobEvents",
      tag: "Jobs",
      summary: "Delivery history of one job, oldest first",
      params: { id: jobIdOfTenant },
      answers: {
        200: {
          description: "Its events.",
          schema: JobEvents,
          examples: [{ job_id: EXAMPLE_JOB_ID, events: [EXAMPLE_EVENT] }],
        },
      },
      fails: { 404: NO_SUCH_JOB },
      async handle({ tenant, params: { id } }) {
        const job = await find(ports, tenant, id);
        return reply(200, { job_id: job.jobId, events: job.events.map(shownJobEvent) });
      },
    }),
  ];
}

/**
 * Reads the queue first: its state is newer than the event store's. Throws 404 if the tenant has no such job, with the same
 * answer whether or not another tenant has it.
 */
async function find({ queue, eventStore }: JobPorts, tenant: Tenant, id: string): Promise<JobRecord> {
  const job = isJobId(id) ? ((await queue.job(tenant, id)) ?? (await eventStore.job(tenant.tenantId, id))) : null;
  if (job === null) throw noSuch("job");
  return job;
}
