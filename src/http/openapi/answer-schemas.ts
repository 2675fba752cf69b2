import { EVENT_TYPES } from "../../domain/event.ts";
import { CHANNELS, JOB_STATUSES, SUPPRESSION_REASONS } from "../../domain/job.ts";
import type { JsonObject } from "../../domain/json.ts";
import { PERMISSIONS } from "../../domain/tenant.ts";
import { PASS_TYPES } from "../../domain/wallet.ts";

const uuid: JsonObject = { type: "string", format: "uuid" };
const timestamp: JsonObject = { type: "string", format: "date-time" };
const channels: JsonObject = { type: "array", items: { type: "string", enum: CHANNELS } };
const nextCursor: JsonObject = { type: ["string", "null"], description: "Pass it as `cursor`; null on the last page." };

/** All members are required unless named in `optional`. */
function object(properties: Readonly<Record<string, JsonObject>>, optional: readonly string[] = []): JsonObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required };
}

function listOf(name: string, schema: string): JsonObject {
  return object({ [name]: { type: "array", items: { $ref: `#/components/schemas/${schema}` } } });
}

const awayParts: JsonObject = {
  type: "array",
  items: object({ part: { type: "string" }, since: { type: "string", format: "date-time" } }),
  description: "All parts that are away, those too without which work goes on. Left out while none is.",
};

const eventMembers = {
  event_id: { type: "integer", format: "int64", description: "Increasing: newer events have larger ids." },
  event_type: { type: "string", enum: EVENT_TYPES },
  result: {
    type: "object",
    description:
      "Empty, except: failed `{error}`, bounced `{code, enhanced_code, diagnostic}`, clicked `{url}`, suppressed `{reason}`.",
  },
  created_at: { ...timestamp, description: "UTC, as YYYY-MM-DDTHH:MM:SSZ." },
} satisfies Record<string, JsonObject>;

/** Bodies of the answers. */
export const answerSchemas: JsonObject = {
  Error: object({ error: { type: "string", description: "One sentence that a person can act on." } }),
  ContentError: object(
    {
      error: { type: "string" },
      violations: {
        type: "array",
        items: object({
          rule: { type: "string", enum: ["empty", "too_large", "image_only", "script"] },
          message: { type: "string" },
        }),
      },
    },
    ["violations"],
  ),
  EmailSend: {
    ...object(
      {
        to_address: {
          type: "string",
          maxLength: 254,
          description:
            "One address (RFC 5321) in ASCII, no list and no display name. Internationalised domains in their xn-- form.",
        },
        to_name: { type: "string", maxLength: 998, description: "The recipient's display name." },
        subject: {
          type: "string",
          maxLength: 998,
          description: "May hold {{.placeholders}}. By default the template's.",
        },
        template_id: { type: "string", description: "Slug of a registered template. Required without `html`." },
        html: {
          type: "string",
          description: "Inline HTML, which takes precedence. Needs the permission allow_raw_html.",
        },
        data: {
          type: "object",
          additionalProperties: true,
          description: "What the placeholders of body and subject are filled from.",
        },
      },
      ["to_name", "subject", "template_id", "html", "data"],
    ),
    anyOf: [{ required: ["template_id"] }, { required: ["html"] }],
  },
  PendingJob: object({ job_id: uuid, status: { type: "string", const: "pending" } }),
  Job: object(
    {
      job_id: uuid,
      status: { type: "string", enum: JOB_STATUSES },
      result: {
        type: "object",
        description:
          "Present when finished. Success of an e-mail or a chat message: empty; of a pass: `{pass_id, pkpass_base64}` " +
          "or `{pass_id, save_link}`, with the pass's file or link as it is when the job is read. Failed: `{error}`, from the spam filter also `spam_score` " +
          "and `spam_rules`. Suppressed: `{reason}`.",
      },
    },
    ["result"],
  ),
  JobEvents: object({ job_id: uuid, events: { type: "array", items: object(eventMembers) } }),
  EventPage: object({
    events: {
      type: "array",
      items: object({ ...eventMembers, job_id: uuid, channel: { type: "string", enum: CHANNELS } }),
    },
    has_more: { type: "boolean" },
    next_cursor: { type: "integer", format: "int64", description: "Pass it as `cursor`; 0 on the last page." },
  }),
  Tenant: object({
    id: { type: "string" },
    name: { type: "string" },
    plan: { type: "string" },
    channels,
    permissions: { type: "array", items: { type: "string", enum: PERMISSIONS } },
    allow_custom: channels,
    tokens: { type: "integer", description: "Balance of wallet tokens." },
    shard: { type: "integer" },
    created_at: timestamp,
  }),
  TenantPage: object({
    tenants: { type: "array", items: { $ref: "#/components/schemas/Tenant" } },
    next_cursor: nextCursor,
  }),
  NewKey: object({ key_id: { type: "string" }, api_key: { type: "string", description: "Shown once." } }),
  Key: object({ key_id: { type: "string" }, prefix: { type: "string" }, created_at: timestamp }),
  KeyList: listOf("keys", "Key"),
  Plan: object({
    name: { type: "string" },
    requests_per_minute: { type: "integer" },
    deliveries_per_second: { type: ["number", "null"], description: "Null: as fast as the provider takes them." },
    queued_jobs_max: {
      type: "integer",
      description: "Unfinished jobs that a tenant may have; beyond it sends are 429.",
    },
    queued_bytes_max: { type: "integer", description: "Bytes of the payloads of a tenant's unfinished jobs." },
    hold_hours: {
      type: "number",
      description: "How long after its acceptance a job is held while its mail server or provider is away.",
    },
  }),
  PlanList: listOf("plans", "Plan"),
  Template: {
    anyOf: [
      object({
        slug: { type: "string" },
        channel: { type: "string", const: "email" },
        subject: { type: "string" },
        html: { type: "string" },
        text: { type: ["string", "null"] },
      }),
      object({
        slug: { type: "string" },
        channel: { type: "string", const: "wallet" },
        pass_type: { type: "string", enum: PASS_TYPES },
        style: { type: ["string", "null"], description: "Of passes of type apple; null: as the request says." },
        pass_data: { type: "object", description: "What requests leave out of theirs." },
      }),
    ],
  },
  TemplateList: listOf("templates", "Template"),
  Balance: object({ balance: { type: "integer" } }),
  TokenMovementPage: object({
    movements: {
      type: "array",
      items: object({
        amount: { type: "integer" },
        reason: { type: "string" },
        job_id: { type: ["string", "null"] },
        balance: { type: "integer" },
        created_at: timestamp,
      }),
    },
    next_cursor: nextCursor,
  }),
  Suppression: object({
    address: { type: "string", description: "In lower case: addresses are compared without regard to case." },
    reason: { type: "string", enum: SUPPRESSION_REASONS },
    created_at: timestamp,
  }),
  SuppressionPage: object({
    suppressions: { type: "array", items: { $ref: "#/components/schemas/Suppression" } },
    next_cursor: nextCursor,
  }),
  SandboxMessages: object({
    messages: {
      type: "array",
      items: object({
        channel: { type: "string", const: "email" },
        received_at: timestamp,
        from: { type: "string" },
        to: { type: "string" },
        subject: { type: "string" },
        source: { type: "string", description: "As it came over the wire." },
      }),
    },
  }),
  DeviceComplaints: object({
    complaints: { type: "array", items: object({ logged_at: timestamp, message: { type: "string" } }) },
  }),
  MailReportsTaken: object({
    reports: { type: "integer", minimum: 0, description: "Reports about messages of ours that were in it." },
  }),
  Health: object({ status: { type: "string", const: "ok" } }),
  Ready: object({ status: { type: "string", const: "ready" }, away: awayParts }, ["away"]),
  NotReady: object(
    {
      error: { type: "string" },
      status: { type: "string", const: "unavailable" },
      failing: { type: "array", items: { type: "string" }, description: "Names of the parts that are down." },
      away: awayParts,
    },
    ["away"],
  ),
};
