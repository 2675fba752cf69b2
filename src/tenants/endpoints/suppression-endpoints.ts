import { Type } from "@sinclair/typebox";
import { SUPPRESSION_REASONS } from "../../domain/jobs/job.ts";
import type { Page } from "../../domain/page.ts";
import { isRecipient, normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import {
  isErasedName,
  readTopic,
  type SuppressionRecord,
  suppressionName,
  TOPIC_RULE,
} from "../../domain/tenants/suppressions.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { CONFLICT, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { managedEndpoints } from "../../http/managed-endpoint.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import {
  paging,
  pathText,
  type QueryParameter,
  queryText,
  readQuery,
  tenantIdParameter,
} from "../../http/parameters.ts";
import { enumSchema, pageSchema, Timestamp } from "../../http/schemas.ts";
import { noSuch, requireResult } from "../../http/store-results.ts";
import { ownLimits } from "../limits.ts";
import type { SuppressionList } from "../suppression-list.ts";

/** The placeholder for an erased recipient. */
const ERASED = "(erased)";

const Suppression = Type.Object(
  {
    address: Type.String({
      description: `In lower case: addresses are compared without regard to case. \`${ERASED}\`: the address itself is no longer stored.`,
    }),
    topic: Type.Optional(
      Type.String({ description: "Only messages on this topic do not go there; absent: none does." }),
    ),
    reason: enumSchema(SUPPRESSION_REASONS),
    created_at: Timestamp,
  },
  { $id: "Suppression" },
);

const EXAMPLE = { address: "ann@example.com", reason: "manual", created_at: "2026-11-21T07:30:00Z" } as const;

const suppressionBody = Type.Object(
  {
    reason: Type.Optional(
      Type.Union(
        SUPPRESSION_REASONS.map((reason) => Type.Literal(reason)),
        { description: `one of ${SUPPRESSION_REASONS.join(", ")}; by default manual` },
      ),
    ),
    topic: Type.Optional(
      Type.String({ description: `${TOPIC_RULE}; absent: messages on all topics, and those without one` }),
    ),
  },
  { additionalProperties: false, examples: [{ reason: "manual" }] },
);

const addressParameter = {
  ...pathText("One e-mail address, phone number or WhatsApp user id, escaped.", "ann@example.com"),
  isPersonal: true,
};

const topicParameter: QueryParameter<string | undefined> = {
  description: "The suppression for this topic alone; absent: the one for all messages.",
  schema: Type.String(),
  example: "newsletter",
  read: parseTopic,
};

interface Ports {
  readonly suppressions: Pick<SuppressionList, "put" | "putOwn" | "remove" | "page">;
  readonly directory: Pick<TenantDirectory, "byId">;
}

/**
 * `/dash/api/tenants/{id}/suppressions` and `/v1/suppressions`: the addresses to which a tenant's messages are not sent. A
 * change takes effect at once.
 */
export function suppressionEndpoints(ports: Ports): readonly Endpoint[] {
  const { suppressions, directory } = ports;
  return [
    ...managedEndpoints({
      method: "GET",
      path: "suppressions",
      name: "suppressions",
      operation: "listSuppressions",
      summary: "Whom the tenant's messages no longer go to, in the order of addresses",
      query: { ...paging, address: queryText("Only this address, with each of its topics.") },
      answers: {
        200: {
          description: "One page.",
          schema: pageSchema("SuppressionPage", "suppressions", Suppression),
          examples: [{ suppressions: [EXAMPLE], next_cursor: null }],
        },
      },
      async handle({ tenantId, query: { cursor, limit, address: text } }) {
        const address = text === null ? undefined : addressIn(text);
        if (address === null) {
          throw new ApiError(400, "address must be one e-mail address, phone number or WhatsApp user id");
        }
        const { items, nextCursor } = requireResult(await suppressions.page(tenantId, cursor, limit, address));
        return reply(200, { suppressions: items.map(shown), next_cursor: nextCursor });
      },
    }),
    putSuppression(ports),
    putOwnSuppression(ports),
    ...getSuppression(ports),
    ...managedEndpoints({
      method: "DELETE",
      path: "suppressions/:address",
      name: "delete_suppression",
      operation: "deleteSuppression",
      summary: "Send to this address again",
      params: { address: addressParameter },
      query: { topic: topicParameter },
      answers: { 204: { description: "Done.", schema: null } },
      fails: [404],
      async handle({ tenantId, self, params: { address: text }, query: { topic } }) {
        const tenant = self?.tenant ?? (await requireTenant(directory, tenantId));
        const address = addressIn(text);
        const name = address === null ? null : suppressionName(address, topic);
        const wasThere = name !== null && requireResult(await suppressions.remove(tenant, name));
        if (!wasThere) throw notSuppressed(topic);
        return reply(204, null);
      },
    }),
  ];
}

const PUT = {
  method: "PUT",
  summary: "Suppress an address: no message is sent to it any more",
  answers: { 200: { description: "As it is now.", schema: Suppression, examples: [EXAMPLE] } },
} as const;

/** An unknown tenant is reported first, whatever else is wrong with the call, because the tenant is looked up first. */
function putSuppression(ports: Ports): Endpoint {
  const body = new OperatorBody(suppressionBody);
  const params = { id: tenantIdParameter, address: addressParameter };
  return endpoint({
    ...PUT,
    path: "/dash/api/tenants/:id/suppressions/:address",
    name: "operator",
    operation: "putSuppression",
    tag: "Tenants",
    caller: "operator",
    params,
    body: { schema: body.documented },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle(door, exchange, raw) {
      const tenant = await requireTenant(ports.directory, params.id.read(raw["id"] ?? null));
      const address = newAddress(params.address.read(raw["address"] ?? null));
      readQuery(exchange.request, []);
      const { reason = "manual", topic } = await body.read(door, exchange);
      const name = suppressionName(address, parseTopic(topic));
      return reply(200, shown(requireResult(await ports.suppressions.put(tenant, name, reason))));
    },
  });
}

function putOwnSuppression(ports: Ports): Endpoint {
  return tenantEndpoint({
    ...PUT,
    path: "/v1/suppressions/:address",
    name: "put_suppression",
    operation: "putOwnSuppression",
    tag: "Management",
    params: { address: addressParameter },
    body: suppressionBody,
    description: `A tenant adds up to ${ownLimits.suppressionsMax.toLocaleString("en")} addresses, beside those that recipients and bounces do.`,
    fails: { 409: CONFLICT },
    async handle({ tenant, params: { address: text }, body: { reason = "manual", topic } }) {
      const address = newAddress(text);
      const name = suppressionName(address, parseTopic(topic));
      return reply(200, shown(requireResult(await ports.suppressions.putOwn(tenant, name, reason))));
    },
  });
}

function getSuppression({ suppressions }: Ports): readonly Endpoint[] {
  return managedEndpoints({
    method: "GET",
    path: "suppressions/:address",
    name: "suppression",
    operation: "getSuppression",
    summary: "Whether the tenant's messages no longer go to this address, and why",
    params: { address: addressParameter },
    query: { topic: topicParameter },
    answers: { 200: { description: "They do not.", schema: Suppression, examples: [EXAMPLE] } },
    fails: [404],
    async handle({ tenantId, params: { address: text }, query: { topic } }) {
      const address = addressIn(text);
      const found = address === null ? [] : await readAll(suppressions, tenantId, address);
      const one = found.find((record) => record.topic === topic);
      if (one === undefined) throw notSuppressed(topic);
      return reply(200, shown(one));
    },
  });
}

/** Reads the address's suppressions: the one for all messages, and those for topics. */
async function readAll(suppressions: Ports["suppressions"], tenantId: string, address: string) {
  const found: SuppressionRecord[] = [];
  let cursor: string | null = null;
  do {
    const { items, nextCursor }: Page<SuppressionRecord> = requireResult(
      await suppressions.page(tenantId, cursor, PAGE, address),
    );
    found.push(...items);
    cursor = nextCursor;
  } while (cursor !== null);
  return found;
}

const PAGE = 500;

function notSuppressed(topic: string | undefined): ApiError {
  return new ApiError(
    "no_such_suppression",
    `this address is not suppressed${topic === undefined ? "" : " for this topic"}`,
  );
}

/** Returns the address in the text; null if it is not exactly one address. */
function addressIn(text: string): string | null {
  const address = normalisedRecipient(text);
  return text === text.trim() && isRecipient(address) ? address : null;
}

/** Throws an `ApiError` 400. */
function newAddress(text: string): string {
  const address = addressIn(text);
  if (address !== null) return address;
  throw new ApiError(
    400,
    "the last part of the path must be one e-mail address, phone number or WhatsApp user id, escaped",
  );
}

/** Throws an `ApiError` 400. */
function parseTopic(text: string | undefined): string | undefined {
  const topic = text === undefined ? undefined : readTopic(text);
  if (topic === null) throw new ApiError(400, `topic must be ${TOPIC_RULE}`);
  return topic;
}

function shown(record: SuppressionRecord): SuppressionRecord {
  return isErasedName(record.address) ? { ...record, address: ERASED } : record;
}

/** Throws 404 if there is no such tenant. */
async function requireTenant(directory: Ports["directory"], id: string): Promise<Tenant> {
  const tenant = await directory.byId(id);
  if (tenant === null) throw noSuch("tenant");
  return tenant;
}
