import { Type } from "@sinclair/typebox";
import type { Clock } from "../../domain/clock.ts";
import { isJobId } from "../../domain/ids.ts";
import type { JobSchedule } from "../../domain/jobs/schedule.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { tenantFailure } from "../../http/failures.ts";
import { Uuid } from "../../http/schemas.ts";
import { unknownMember } from "../../http/sending/acceptance.ts";
import { readSchedule, ScheduledAt } from "../../http/sending/schedule.ts";
import { noSuch } from "../../http/store-results.ts";
import { EXAMPLE_JOB_ID, isoTime } from "./answer-schemas.ts";
import { jobIdOfTenant, NO_SUCH_JOB } from "./job-endpoints.ts";

export interface SchedulePorts {
  readonly schedule: JobSchedule;
  readonly clock: Clock;
}

const Reschedule = Type.Object({ scheduled_at: ScheduledAt }, { $id: "Reschedule", additionalProperties: false });

const ScheduledJob = Type.Object(
  { job_id: Uuid, status: Type.Literal("pending"), scheduled_at: Type.String({ format: "date-time" }) },
  { $id: "ScheduledJob" },
);

const CanceledJob = Type.Object({ job_id: Uuid, status: Type.Literal("suppressed") }, { $id: "CanceledJob" });

const ENDED = "the job has ended";
const NOT_WAITING = "the job no longer waits for its time: its delivery may have begun";
const BEGUN = "the job cannot be cancelled: its delivery may have begun, or its provider has the message";

const JOB_ENDED = tenantFailure("JobNotWaiting", "The job does not wait for its time, or has ended.", NOT_WAITING);
const JOB_BEGUN = tenantFailure("JobBegun", "The message was handed over, or may be, or the job has ended.", BEGUN);

/** `PATCH /v1/jobs/{id}` and `POST /v1/jobs/{id}/cancel`. */
export function scheduleEndpoints(ports: SchedulePorts): readonly Endpoint[] {
  return [rescheduleJob(ports), cancelJob(ports)];
}

function rescheduleJob({ schedule, clock }: SchedulePorts): Endpoint {
  return tenantEndpoint({
    method: "PATCH",
    scope: "send",
    path: "/v1/jobs/:id",
    name: "reschedule_job",
    operation: "rescheduleJob",
    tag: "Jobs",
    summary: "Move a scheduled job to another time",
    description: "A time that is past, or now, sends it at once. 409 once its time has come.",
    params: { id: jobIdOfTenant },
    body: { schema: Reschedule, examples: [{ scheduled_at: "2026-11-21T09:30:00Z" }] },
    answers: {
      200: {
        description: "It will be sent at that time.",
        schema: ScheduledJob,
        examples: [{ job_id: EXAMPLE_JOB_ID, status: "pending", scheduled_at: "2026-11-21T09:30:00.000Z" }],
      },
    },
    fails: { 404: NO_SUCH_JOB, 409: JOB_ENDED },
    async handle({ tenant, params: { id }, body }) {
      const dueMs = parseNewTime(body, clock.nowMs());
      switch (isJobId(id) ? await schedule.reschedule(tenant, id, dueMs) : "unknown") {
        case "moved":
          return reply(200, { job_id: id, status: "pending", scheduled_at: isoTime(dueMs) });
        case "begun":
          throw new ApiError("job_state", NOT_WAITING);
        case "ended":
          throw new ApiError("job_state", ENDED);
        case "unknown":
          throw noSuch("job");
      }
    },
  });
}

/** Throws an `ApiError` 400. */
function parseNewTime(body: unknown, nowMs: number): number {
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");
  const unknown = unknownMember(body, Object.keys(Reschedule.properties));
  if (unknown !== null) throw new ApiError(unknown, unknown.message);
  if ((body["scheduled_at"] ?? null) === null) throw new ApiError(400, "scheduled_at is required");
  const time = readSchedule(body["scheduled_at"], nowMs);
  if ("refusal" in time) throw new ApiError(time.refusal, time.refusal.message);
  return Math.max(time.dueMs, nowMs);
}

function cancelJob({ schedule }: SchedulePorts): Endpoint {
  return tenantEndpoint({
    method: "POST",
    scope: "send",
    path: "/v1/jobs/:id/cancel",
    name: "cancel_job",
    operation: "cancelJob",
    tag: "Jobs",
    summary: "Cancel a job that was not handed over",
    description:
      "It ends as `suppressed` with the reason `canceled`, is not billed, and a pass gives its token back. Repeated, the " +
      "answer is the same. 409 if its delivery has begun, or may have.",
    params: { id: jobIdOfTenant },
    answers: {
      200: {
        description: "It is not sent.",
        schema: CanceledJob,
        examples: [{ job_id: EXAMPLE_JOB_ID, status: "suppressed" }],
      },
    },
    fails: { 404: NO_SUCH_JOB, 409: JOB_BEGUN },
    async handle({ tenant, params: { id } }) {
      switch (isJobId(id) ? await schedule.cancel(tenant, id) : "unknown") {
        case "canceled":
          return reply(200, { job_id: id, status: "suppressed" });
        case "begun":
          throw new ApiError("job_state", BEGUN);
        case "ended":
          throw new ApiError("job_state", ENDED);
        case "unknown":
          throw noSuch("job");
      }
    },
  });
}
