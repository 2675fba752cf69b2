import { Type } from "@sinclair/typebox";
import { isJobId } from "../../domain/ids.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { ANY_JOB, type LaterEvents } from "../../domain/jobs/job-search.ts";
import { normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { limitParameter, queryText } from "../../http/parameters.ts";
import { NextCursor } from "../../http/schemas.ts";
import { momentParameter, requireMoments } from "../day-range.ts";
import {
  type AnywherePorts,
  type FoundJobOfTenant,
  type FoundJobs,
  findJobAnywhere,
  findJobsAnywhere,
  jobIdRange,
} from "../find-jobs.ts";
import { OutcomeSchema, withOutcomes } from "../job-outcome.ts";
import { EXAMPLE_JOB, jobCursor, jobMembers, shownJob } from "./operator-job-endpoints.ts";

/** An address has at most 254 characters; a longer text was never a recipient. */
const RECIPIENT_CHARS_MAX = 320;

const query = {
  recipient: queryText("All jobs to this e-mail address or phone number."),
  job_id: queryText("The job of this id. One of the two is needed."),
  from: momentParameter("from", "Accepted at this time or later.", "2026-11-01"),
  to: momentParameter("to", "Accepted before the end of this day, or at this time or earlier.", "2026-11-21"),
  cursor: jobCursor,
  limit: limitParameter,
};

export type JobSearchPorts = AnywherePorts & { readonly finishedJobs: LaterEvents };

/** `GET /dash/api/jobs`: a job by its id, or all tenants' jobs for a recipient. */
export function jobSearchEndpoint(ports: JobSearchPorts, channels: readonly ChannelName[]): Endpoint {
  const tenant_id = Type.String({ description: "The tenant that sent it." });
  const Job = Type.Object({ tenant_id, ...jobMembers(channels), outcome: OutcomeSchema }, { $id: "FoundJob" });
  const Page = Type.Object(
    {
      jobs: Type.Array(Job),
      next_cursor: NextCursor,
      incomplete: Type.Boolean({
        description: "More jobs are waiting in the queues than are looked through: some of those may be missing.",
      }),
    },
    { $id: "FoundJobPage" },
  );
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/jobs",
    name: "operator",
    operation: "searchJobs",
    tag: "Jobs",
    summary: "Find a job, or what was sent to a recipient, with all tenants",
    description: "Newest first. A job is on one page only, even if it ends meanwhile.",
    query,
    answers: {
      200: {
        description: "One page.",
        schema: Page,
        examples: [
          { jobs: [{ tenant_id: "acme", ...EXAMPLE_JOB, outcome: "failed" }], next_cursor: null, incomplete: false },
        ],
      },
    },
    async handle({ query: { recipient, job_id, from, to, cursor, limit } }) {
      if ((recipient === null) === (job_id === null)) {
        throw new ApiError(400, "one of recipient and job_id is needed, and not both");
      }
      requireMoments(from ?? 0, to ?? Number.MAX_SAFE_INTEGER);
      const range = jobIdRange({ fromMs: from, beforeMs: to, cursor });
      const found =
        job_id === null
          ? await findJobsAnywhere(ports, { ...ANY_JOB, ...range, recipient: parseRecipient(recipient ?? "") }, limit)
          : await only(ports, job_id.trim().toLowerCase(), range);
      const judged = await withOutcomes(ports.finishedJobs, found.jobs);
      const jobs = judged.map(({ job, outcome }) => ({ tenant_id: job.tenantId, ...shownJob(job), outcome }));
      return reply(200, { jobs, next_cursor: found.moreBelow, incomplete: found.isIncomplete });
    },
  });
}

async function only(
  ports: AnywherePorts,
  jobId: string,
  { fromJobId, beforeJobId }: { readonly fromJobId: string | null; readonly beforeJobId: string | null },
): Promise<FoundJobs<FoundJobOfTenant>> {
  if (!isJobId(jobId)) throw new ApiError(400, "job_id must be the id of a job");
  const isInRange = (fromJobId === null || jobId >= fromJobId) && (beforeJobId === null || jobId < beforeJobId);
  const job = isInRange ? await findJobAnywhere(ports, jobId) : null;
  return { jobs: job === null ? [] : [job], moreBelow: null, isIncomplete: false };
}

function parseRecipient(text: string): string {
  if (text.trim() === "")
    throw new ApiError(400, "recipient must be an e-mail address, a phone number or a WhatsApp user id");
  if (text.length > RECIPIENT_CHARS_MAX)
    throw new ApiError(400, `recipient has at most ${RECIPIENT_CHARS_MAX} characters`);
  return normalisedRecipient(text);
}
