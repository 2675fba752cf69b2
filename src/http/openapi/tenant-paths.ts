import { EVENT_TYPES } from "../../domain/event.ts";
import { CHANNELS } from "../../domain/job.ts";
import type { JsonObject } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import { errors, pathParameter, queryParameter, tenantAnswer } from "./answers.ts";
import { requestId, sendOperation } from "./send-operation.ts";

const security: readonly JsonObject[] = [{ apiKey: [] }];
const JOB = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
const jobId = pathParameter("id", "The job_id that the send answered.", JOB);
const READ_ERRORS = { "401": "UnknownKey", "429": "TooManyRequests", "500": "InternalError" } as const;
const EVENT = {
  event_id: 246_512_881_664_000,
  event_type: "sent",
  result: {},
  created_at: "2026-11-21T07:30:00Z",
} as const;

/** What tenants call, with their API key. */
export const tenantPaths: JsonObject = {
  "/v1/send/email": {
    post: sendOperation({
      id: "sendEmail",
      summary: "Queue an e-mail",
      description: "Content comes from a template (`template_id`) or from inline `html`. 202 means: on disk.",
      schema: "EmailSend",
      examples: {
        template: {
          summary: "From a template",
          value: { to_address: "ada@example.com", to_name: "Ada", template_id: "welcome", data: { name: "Ada" } },
        },
        html: {
          summary: "Inline HTML",
          value: {
            to_address: "ada@example.com",
            subject: "Order {{.number}}",
            html: "<p>On its way.</p>",
            data: { number: 1042 },
          },
        },
      },
    }),
  },
  "/v1/jobs/{id}": {
    get: {
      operationId: "getJob",
      tags: ["Jobs"],
      summary: "What became of a job",
      security,
      parameters: [jobId, requestId],
      responses: {
        "200": tenantAnswer({
          description: "The job. One that is in progress has no result.",
          schema: "Job",
          examples: {
            running: { value: { job_id: JOB, status: "running" } },
            success: { value: { job_id: JOB, status: "success", result: {} } },
            failed: { value: { job_id: JOB, status: "failed", result: { error: "550 5.7.1 refused" } } },
            suppressed: { value: { job_id: JOB, status: "suppressed", result: { reason: "unsubscribed" } } },
          },
        }),
        ...errors({ ...READ_ERRORS, "404": "NoSuchJob" }),
      },
    },
  },
  "/v1/jobs/{id}/events": {
    get: {
      operationId: "getJobEvents",
      tags: ["Jobs"],
      summary: "Delivery history of one job, oldest first",
      security,
      parameters: [jobId, requestId],
      responses: {
        "200": tenantAnswer({
          description: "Its events.",
          schema: "JobEvents",
          example: { job_id: JOB, events: [EVENT] },
        }),
        ...errors({ ...READ_ERRORS, "404": "NoSuchJob" }),
      },
    },
  },
  "/v1/events": {
    get: {
      operationId: "listEvents",
      tags: ["Events"],
      summary: "Delivery history of the tenant, newest first",
      description: "For more than 31 days, split the export into several calls. Unknown parameters are refused.",
      security,
      parameters: [
        {
          ...queryParameter("from", "First UTC day, inclusive.", { type: "string", format: "date" }),
          required: true,
          example: "2026-11-01",
        },
        {
          ...queryParameter("to", "Last UTC day, inclusive; at most 31 days after `from`.", {
            type: "string",
            format: "date",
          }),
          required: true,
          example: "2026-11-21",
        },
        queryParameter("channel", "Only this channel. Without it: e-mail and chat.", {
          type: "string",
          enum: CHANNELS,
        }),
        queryParameter("event_type", "Only this type.", { type: "string", enum: EVENT_TYPES }),
        queryParameter("limit", "Page size; above 500 counts as 500.", {
          type: "integer",
          minimum: 1,
          default: limits.eventPageDefault,
        }),
        queryParameter("cursor", "The `next_cursor` of the previous page.", {
          type: "integer",
          format: "int64",
          minimum: 1,
        }),
        requestId,
      ],
      responses: {
        "200": tenantAnswer({
          description: "One page.",
          schema: "EventPage",
          example: {
            events: [{ ...EVENT, job_id: JOB, channel: "email" }],
            has_more: true,
            next_cursor: EVENT.event_id,
          },
        }),
        ...errors({ ...READ_ERRORS, "400": "BadRequest" }),
      },
    },
  },
};
