import { Type } from "@sinclair/typebox";
import { walletTemplateBody } from "../../channels/wallet/operator-bodies.ts";
import type { JsonObject } from "../../domain/json.ts";
import {
  emailCredentialsBody,
  emailTemplateBody,
  planBody,
  tenantBody,
  tenantChangeBody,
  tokensBody,
} from "../../tenants/body-schemas.ts";
import { suppressionBody } from "../../tenants/suppression-body.ts";
import { pathParameter, queryParameter } from "./answers.ts";
import { NOT_FOUND, operation, paging, tenantId } from "./operator-operation.ts";

const slug = pathParameter("slug", "The template's slug: what `template_id` names.", "welcome");
const address = pathParameter("address", "One e-mail address, escaped.", "ann@example.com");
const TENANT: JsonObject = {
  id: "acme",
  name: "Acme",
  plan: "free",
  channels: ["email"],
  permissions: [],
  allow_custom: [],
  tokens: 0,
  shard: 7,
  created_at: "2026-11-21T07:30:00.000Z",
};
const TEMPLATE: JsonObject = {
  slug: "welcome",
  channel: "email",
  subject: "Welcome, {{.name}}",
  html: "<p>Hello {{.name}}</p>",
  text: null,
};
const SUPPRESSION: JsonObject = {
  address: "ann@example.com",
  reason: "manual",
  created_at: "2026-11-21T07:30:00Z",
};
const PLAN: JsonObject = {
  name: "pro",
  requests_per_minute: 1000,
  deliveries_per_second: null,
  queued_jobs_max: 2_000_000,
  queued_bytes_max: 2_147_483_648,
  hold_hours: 72,
};

/** What operators call, with the operator token. */
export const operatorPaths: JsonObject = {
  "/dash/api/tenants": {
    get: operation({
      id: "listTenants",
      tag: "Tenants",
      summary: "List the tenants",
      parameters: paging,
      status: "200",
      answers: { schema: "TenantPage", example: { tenants: [TENANT], next_cursor: null } },
      alsoFails: { "400": "OperatorBadRequest" },
    }),
    post: operation({
      id: "createTenant",
      tag: "Tenants",
      summary: "Create a tenant",
      body: tenantBody,
      status: "201",
      answers: { schema: "Tenant", example: TENANT },
      alsoFails: { "409": "OperatorConflict" },
    }),
  },
  "/dash/api/tenants/{id}": {
    get: operation({
      id: "getTenant",
      tag: "Tenants",
      summary: "One tenant",
      parameters: [tenantId],
      status: "200",
      answers: { schema: "Tenant", example: TENANT },
      alsoFails: NOT_FOUND,
    }),
    patch: operation({
      id: "changeTenant",
      tag: "Tenants",
      summary: "Change a tenant",
      parameters: [tenantId],
      body: tenantChangeBody,
      status: "200",
      answers: { schema: "Tenant", example: { ...TENANT, plan: "pro" } },
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/keys": {
    get: operation({
      id: "listKeys",
      tag: "Tenants",
      summary: "List a tenant's keys, without the keys themselves",
      parameters: [tenantId],
      status: "200",
      answers: {
        schema: "KeyList",
        example: { keys: [{ key_id: "k1", prefix: "wb_live_a1", created_at: "2026-11-21T07:30:00.000Z" }] },
      },
      alsoFails: NOT_FOUND,
    }),
    post: operation({
      id: "createKey",
      tag: "Tenants",
      summary: "Make a key, which is shown this once",
      parameters: [tenantId],
      status: "201",
      answers: { schema: "NewKey", example: { key_id: "k1", api_key: "wb_live_a1b2c3" } },
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/keys/{key_id}": {
    delete: operation({
      id: "revokeKey",
      tag: "Tenants",
      summary: "Revoke a key, on every process within a second",
      parameters: [tenantId, pathParameter("key_id", "The key's id.", "k1")],
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/credentials/email": {
    put: operation({
      id: "putEmailCredentials",
      tag: "Tenants",
      summary: "Set a tenant's own sender; stored encrypted, never given back",
      parameters: [tenantId],
      body: emailCredentialsBody,
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/templates": {
    get: operation({
      id: "listTemplates",
      tag: "Tenants",
      summary: "List a tenant's templates",
      parameters: [tenantId],
      status: "200",
      answers: { schema: "TemplateList", example: { templates: [TEMPLATE] } },
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/templates/{slug}": {
    get: operation({
      id: "getTemplate",
      tag: "Tenants",
      summary: "One template",
      parameters: [tenantId, slug],
      status: "200",
      answers: { schema: "Template", example: TEMPLATE },
      alsoFails: NOT_FOUND,
    }),
    put: operation({
      id: "putTemplate",
      tag: "Tenants",
      summary: "Create or replace a template of an e-mail or a pass",
      parameters: [tenantId, slug],
      body: Type.Union([emailTemplateBody, walletTemplateBody], { examples: emailTemplateBody["examples"] }),
      status: "200",
      answers: { schema: "Template", example: TEMPLATE },
      alsoFails: NOT_FOUND,
    }),
    delete: operation({
      id: "deleteTemplate",
      tag: "Tenants",
      summary: "Delete a template",
      parameters: [tenantId, slug],
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/tokens": {
    get: operation({
      id: "listTokenMovements",
      tag: "Tenants",
      summary: "Charges and top-ups, newest first",
      parameters: [tenantId, ...paging],
      status: "200",
      answers: { schema: "TokenMovementPage" },
      alsoFails: { ...NOT_FOUND, "400": "OperatorBadRequest" },
    }),
    post: operation({
      id: "addTokens",
      tag: "Tenants",
      summary: "Add tokens, or take them (a negative amount)",
      parameters: [tenantId],
      body: tokensBody,
      status: "200",
      answers: { schema: "Balance", example: { balance: 500 } },
      alsoFails: { ...NOT_FOUND, "409": "OperatorConflict" },
    }),
  },
  "/dash/api/tenants/{id}/suppressions": {
    get: operation({
      id: "listSuppressions",
      tag: "Tenants",
      summary: "Whom the tenant's messages no longer go to, in the order of addresses",
      parameters: [tenantId, ...paging],
      status: "200",
      answers: { schema: "SuppressionPage", example: { suppressions: [SUPPRESSION], next_cursor: null } },
      alsoFails: { "400": "OperatorBadRequest", ...NOT_FOUND },
    }),
  },
  "/dash/api/tenants/{id}/suppressions/{address}": {
    put: operation({
      id: "putSuppression",
      tag: "Tenants",
      summary: "Send nothing to this address any more",
      parameters: [tenantId, address],
      body: suppressionBody,
      status: "200",
      answers: { schema: "Suppression", example: SUPPRESSION },
      alsoFails: NOT_FOUND,
    }),
    delete: operation({
      id: "deleteSuppression",
      tag: "Tenants",
      summary: "Send to this address again",
      parameters: [tenantId, address],
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/plans": {
    get: operation({
      id: "listPlans",
      tag: "Plans",
      summary: "List the plans",
      status: "200",
      answers: { schema: "PlanList", example: { plans: [PLAN] } },
    }),
  },
  "/dash/api/plans/{name}": {
    put: operation({
      id: "putPlan",
      tag: "Plans",
      summary: "Create or change a plan; a share of the queue that is left out is the default",
      parameters: [pathParameter("name", "A slug.", "pro")],
      body: planBody,
      status: "200",
      answers: { schema: "Plan", example: PLAN },
    }),
  },
  "/dash/api/sandbox/messages": {
    get: operation({
      id: "listSandboxMessages",
      tag: "Sandbox",
      summary: "What the sandbox received, newest first",
      parameters: [
        queryParameter("to", "Only to this address.", { type: "string" }),
        queryParameter("limit", "At most this many; above 500 counts as 500.", {
          type: "integer",
          minimum: 1,
          default: 100,
        }),
      ],
      status: "200",
      answers: { schema: "SandboxMessages" },
      alsoFails: { ...NOT_FOUND, "400": "OperatorBadRequest" },
    }),
  },
};
