import { Type } from "@sinclair/typebox";
import { CONTROL } from "../domain/texts/control-characters.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import { ApiError } from "../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import { paging, type QueryParameter } from "../http/parameters.ts";
import { pageSchema, Timestamp } from "../http/schemas.ts";
import { requireResult } from "../http/store-results.ts";
import type { AuditRepository } from "./audit-log.ts";

const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const AuditRow = Type.Object(
  {
    audit_id: Type.Integer(),
    at: Timestamp,
    operator_id: Type.String({ description: "Of what a tenant changed itself: its key's." }),
    operator: Type.String({ description: "The operator's name at that time, or the id of the tenant's key." }),
    action: Type.String({ description: "The call's operationId in this document." }),
    tenant: orNull("The tenant that the path names, or that called."),
    target: orNull("The other parts that the path names; of a recipient, the domain alone."),
    detail: Type.Unsafe<JsonObject>({
      type: "object",
      additionalProperties: true,
      description: "`body` and `answer`: what was given and made. Members that may be secret have no value.",
    }),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description: "The answer's status; null: it is unknown how the call ended.",
    }),
    request_id: Type.String(),
    calls: Type.Integer({
      description:
        "How many calls the row stands for: of a tenant's, beyond a share of the day, those of one operation and status are " +
        "counted in one. Key (`several`: more than one), target and detail are the first one's.",
    }),
  },
  { $id: "AuditRow" },
);

const EXAMPLE = {
  audit_id: 1042,
  at: "2026-11-21T07:30:00.000Z",
  operator_id: "op_7RkQ0pZlT2m5AbCd",
  operator: "ann",
  action: "changeTenant",
  tenant: "acme",
  target: null,
  detail: { body: { plan: "pro" } },
  status: 200,
  request_id: "order-1042",
  calls: 1,
} as const;

const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Parses a UTC day or time to unix milliseconds: a day means its beginning or, for `to`, its end. */
function timeParameter(name: "from" | "to", description: string): QueryParameter<number | null> {
  return {
    description,
    schema: Type.String({ pattern: TIME.source }),
    example: "2026-11-21",
    read(text) {
      if (text === undefined) return null;
      const unixMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
      // The round trip refuses days that do not exist, such as 30 February.
      if (Number.isNaN(unixMs) || !new Date(unixMs).toISOString().startsWith(text.slice(0, 10))) {
        throw new ApiError(400, `${name} must be a UTC day or time, as 2026-11-21 or 2026-11-21T07:30:00Z`);
      }
      return name === "to" && text.length === 10 ? unixMs + DAY_MS : unixMs;
    },
  };
}

/** Reads a name to filter by. No name has a control character, and PostgreSQL refuses NUL. */
function nameParameter(name: "operator" | "tenant" | "action", description: string): QueryParameter<string | null> {
  return {
    description,
    schema: Type.String(),
    read(text) {
      if (text !== undefined && CONTROL.test(text))
        throw new ApiError(400, `${name} must not contain control characters`);
      return text ?? null;
    },
  };
}

/** `GET /dash/api/audit`: the audit log. */
export function auditEndpoint({ audit }: { readonly audit: Pick<AuditRepository, "page"> }): Endpoint {
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/audit",
    name: "operator",
    operation: "listAudit",
    tag: "Operators",
    summary: "List the changes by operators and by tenants themselves, newest first, of the last 400 days",
    description:
      "One row for each call of an operator that is not a read, whatever its result, and for each change that a tenant made to " +
      "its data (keys, templates, webhooks, …). These have no row: calls refused for their token or role, a " +
      "tenant's calls that were refused before they did anything, sign-ins, verifications of a domain, and " +
      "`POST /dash/api/mail-reports`. A tenant's own calls have a row each, up to 10,000 per day and process, and up to 100 that were " +
      "refused; further ones are counted in one row for each operation and status (`calls`).",
    query: {
      operator: nameParameter("operator", "Only of the operator of this name."),
      tenant: nameParameter("tenant", "Only about this tenant."),
      action: nameParameter("action", "Only calls of this operationId."),
      from: timeParameter("from", "Not before this UTC day or time."),
      to: timeParameter("to", "Up to the end of this UTC day, or before this time."),
      ...paging,
    },
    answers: {
      200: {
        description: "One page.",
        schema: pageSchema("AuditPage", "rows", AuditRow),
        examples: [{ rows: [EXAMPLE], next_cursor: null }],
      },
    },
    async handle({ query: { operator, tenant, action, from, to, cursor, limit } }) {
      const filter = { operator, tenant, action, fromMs: from, toMs: to };
      const { items, nextCursor } = requireResult(await audit.page(filter, cursor, limit));
      return reply(200, { rows: items, next_cursor: nextCursor });
    },
  });
}
