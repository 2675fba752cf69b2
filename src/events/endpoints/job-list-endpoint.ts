import { Type } from "@sinclair/typebox";
import type { Clock } from "../../domain/clock.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { FinishedJobs, QueuedJobs } from "../../domain/jobs/job-search.ts";
import { CallTurns } from "../../http/call-turns.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { findJobs } from "../find-jobs.ts";
import { eventLimits } from "../limits.ts";
import {
  EXAMPLE_JOB,
  jobListQuery,
  jobMembers,
  jobPageSchema,
  shownJob,
  toJobFilter,
} from "./operator-job-endpoints.ts";

export interface JobListPorts {
  readonly queue: QueuedJobs;
  readonly finishedJobs: Pick<FinishedJobs, "finished">;
  readonly clock: Clock;
}

/** `GET /v1/jobs`: the tenant's jobs in queue and event store, as in the operators' list. */
export function jobListEndpoint(ports: JobListPorts, channels: readonly ChannelName[]): Endpoint {
  const Job = Type.Object(jobMembers(channels), { $id: "ListedJob" });
  const turns = new CallTurns(eventLimits.jobLists, ports.clock);
  return tenantEndpoint({
    method: "GET",
    path: "/v1/jobs",
    name: "jobs",
    operation: "listOwnJobs",
    tag: "Jobs",
    summary: "The tenant's jobs, newest first",
    description:
      "Unfinished and finished ones; finished ones are kept for `JOBS_KEPT_DAYS`. A job is on one page only, even if it ends meanwhile. A page can have fewer jobs than `limit`, even none: the list goes on while there is a `next_cursor`. One list of a tenant is read at a time, and a few wait for it.",
    query: jobListQuery(channels),
    answers: {
      200: {
        description: "One page.",
        schema: jobPageSchema(Job, "JobPage"),
        examples: [{ jobs: [EXAMPLE_JOB], next_cursor: EXAMPLE_JOB.job_id, incomplete: false }],
      },
    },
    async handle({ tenant, query }) {
      const filter = toJobFilter(query);
      // Each search reads thousands of entries of the queue, which all tenants share.
      const page = await turns.inTurn(tenant.tenantId, () => findJobs(ports, tenant, filter, query.limit));
      const jobs = page.jobs.map(shownJob);
      return reply(200, { jobs, next_cursor: page.moreBelow, incomplete: page.isIncomplete });
    },
  });
}
