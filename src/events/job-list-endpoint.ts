import { Type } from "@sinclair/typebox";
import type { ChannelName } from "../domain/job.ts";
import type { FinishedJobs, QueuedJobs } from "../domain/job-search.ts";
import { type Endpoint, reply, tenantEndpoint } from "../http/endpoint.ts";
import { findJobs } from "./find-jobs.ts";
import { EXAMPLE_JOB, jobFilterOf, jobListQuery, jobMembers, jobPageOf, shownJob } from "./operator-job-endpoints.ts";

export interface JobListPorts {
  readonly queue: QueuedJobs;
  readonly finishedJobs: FinishedJobs;
}

/** `GET /v1/jobs`: the tenant's jobs, wherever they are; the list that operators have of it. */
export function jobListEndpoint(ports: JobListPorts, channels: readonly ChannelName[]): Endpoint {
  const Job = Type.Object(jobMembers(channels), { $id: "ListedJob" });
  return tenantEndpoint({
    method: "GET",
    path: "/v1/jobs",
    name: "jobs",
    operation: "listOwnJobs",
    tag: "Jobs",
    summary: "The tenant's jobs, newest first",
    description:
      "Unfinished and finished ones; finished ones are kept for `JOBS_KEPT_DAYS`. A job is on one page only, even if it ends meanwhile.",
    query: jobListQuery(channels),
    answers: {
      200: {
        description: "One page.",
        schema: jobPageOf(Job, "JobPage"),
        examples: [{ jobs: [EXAMPLE_JOB], next_cursor: EXAMPLE_JOB.job_id, incomplete: false }],
      },
    },
    async handle({ tenant, query }) {
      const page = await findJobs(ports, tenant, jobFilterOf(query), query.limit);
      const jobs = page.jobs.map(shownJob);
      return reply(200, { jobs, next_cursor: page.moreBelow, incomplete: page.isIncomplete });
    },
  });
}
