import { Type } from "@sinclair/typebox";
import { ApiError } from "../http/api-error.ts";
import type { AuditShown } from "../http/audit.ts";
import { type Endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../http/failures.ts";
import { type PathParameter, tenantIdParameter } from "../http/parameters.ts";
import { listOf, oneLine, optional, Timestamp } from "../http/schemas.ts";
import { noSuch, resultOf } from "../http/store-results.ts";
import type { TenantRegistry } from "./registry.ts";

const Key = Type.Object(
  {
    key_id: Type.String(),
    prefix: Type.String(),
    name: Type.Union([Type.String(), Type.Null()]),
    created_at: Timestamp,
    last_used_at: Type.Union([Timestamp, Type.Null()], { description: "To about a minute; null: never." }),
    expires_at: Type.Union([Timestamp, Type.Null()], { description: "Null: it does not expire." }),
  },
  { $id: "Key" },
);

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

const keyBody = Type.Object(
  {
    name: optional(oneLine("1 to 100 characters without control characters", 100, 1)),
    expires_at: optional(Type.String({ pattern: TIME.source, description: "a time to come, as 2027-01-01T00:00:00Z" })),
  },
  { additionalProperties: false, examples: [{ name: "shop, production" }] },
);

const NewKey = Type.Object(
  { key_id: Type.String(), api_key: Type.String({ description: "Shown once." }) },
  { $id: "NewKey" },
);

/** Throws 404 for a text that cannot be a key's id. */
const keyIdParameter: PathParameter<string> = {
  description: "The key's id.",
  example: "k1",
  read(text) {
    if (text === null || !/^[\x21-\x7e]{1,128}$/.test(text)) throw noSuch("key");
    return text;
  },
};

const EXAMPLE = {
  key_id: "k1",
  prefix: "wb_live_a1",
  name: "shop, production",
  created_at: "2026-11-21T07:30:00Z",
  last_used_at: "2026-11-22T09:00:00Z",
  expires_at: null,
} as const;

/** What the audit log shows of a new key. */
export const NEW_KEY_SHOWN: AuditShown = { body: ["name", "expires_at"], answer: ["key_id"] };

type Keys = Pick<TenantRegistry, "createKey" | "keys" | "revokeKey">;

/** `/dash/api/tenants/{id}/keys`: a key is shown once, when it is created. */
export function keyEndpoints({ registry }: { readonly registry: Keys }): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "POST",
      path: "/dash/api/tenants/:id/keys",
      name: "operator",
      operation: "createKey",
      tag: "Tenants",
      summary: "Make a key, which is shown this once",
      description: "Requests with a key that has expired are refused with 401.",
      params: { id: tenantIdParameter },
      body: { optional: keyBody },
      audit: NEW_KEY_SHOWN,
      answers: {
        201: { description: "The key.", schema: NewKey, examples: [{ key_id: "k1", api_key: "wb_live_a1b2c3" }] },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ door, params: { id }, body }) {
        const expiresAt = expiryOf(body?.expires_at ?? null, door.ports.clock.nowMs());
        return reply(201, resultOf(await registry.createKey(id, { name: nameOf(body?.name ?? null), expiresAt })));
      },
    }),
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/tenants/:id/keys",
      name: "operator",
      operation: "listKeys",
      tag: "Tenants",
      summary: "List a tenant's keys, without the keys themselves",
      params: { id: tenantIdParameter },
      answers: {
        200: {
          description: "All of them.",
          schema: listOf("KeyList", "keys", Key),
          examples: [{ keys: [EXAMPLE] }],
        },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      handle: async ({ params: { id } }) => reply(200, { keys: resultOf(await registry.keys(id)) }),
    }),
    operatorEndpoint({
      method: "DELETE",
      path: "/dash/api/tenants/:id/keys/:key_id",
      name: "operator",
      operation: "revokeKey",
      tag: "Tenants",
      summary: "Revoke a key, on every process within a second",
      params: { id: tenantIdParameter, key_id: keyIdParameter },
      answers: { 204: { description: "Done.", schema: null } },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ params: { id, key_id } }) {
        resultOf(await registry.revokeKey(id, key_id));
        return reply(204, null);
      },
    }),
  ];
}

/** Throws an `ApiError` 400 unless the time exists and is to come. */
function expiryOf(text: unknown, nowMs: number): Date | null {
  if (typeof text !== "string") return null;
  const unixMs = Date.parse(text);
  if (Number.isNaN(unixMs)) throw new ApiError(400, "expires_at must be a time to come, as 2027-01-01T00:00:00Z");
  if (unixMs <= nowMs) throw new ApiError(400, "expires_at is over already");
  return new Date(unixMs);
}

/** Throws an `ApiError` 400 for a blank name. */
function nameOf(name: unknown): string | null {
  if (typeof name !== "string") return null;
  if (name.trim() === "") throw new ApiError(400, "name must not be blank");
  return name;
}
