import { type Static, Type } from "@sinclair/typebox";
import { SCOPES, type Scope } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import type { AuditShown } from "../../http/audit.ts";
import { type Endpoint, reply } from "../../http/endpoint.ts";
import { managedEndpoints, type Self } from "../../http/managed-endpoint.ts";
import type { PathParameter } from "../../http/parameters.ts";
import { enumSchema, listSchema, oneLine, optional, Timestamp } from "../../http/schemas.ts";
import { noSuch, requireResult } from "../../http/store-results.ts";
import { ownLimits } from "../limits.ts";
import type { TenantRegistry } from "../registry.ts";

const Key = Type.Object(
  {
    key_id: Type.String(),
    prefix: Type.String(),
    name: Type.Union([Type.String(), Type.Null()]),
    created_at: Timestamp,
    last_used_at: Type.Union([Timestamp, Type.Null()], { description: "To about a minute; null: never." }),
    expires_at: Type.Union([Timestamp, Type.Null()], { description: "Null: it does not expire." }),
    scopes: Type.Array(enumSchema(SCOPES), { description: "The scopes of the key." }),
  },
  { $id: "Key" },
);

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

const keyBody = Type.Object(
  {
    name: optional(oneLine("1 to 100 characters without control characters", 100, 1)),
    expires_at: optional(Type.String({ pattern: TIME.source, description: "a time to come, as 2027-01-01T00:00:00Z" })),
    scopes: optional(
      Type.Array(
        Type.Union(
          SCOPES.map((scope) => Type.Literal(scope)),
          { description: `one of ${SCOPES.join(", ")}` },
        ),
        { minItems: 1, uniqueItems: true, description: `a list of ${SCOPES.join(", ")}, each once, at least one` },
      ),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ name: "shop, production" }, { name: "the shop's front end", scopes: ["send"] }],
  },
);

const NewKey = Type.Object(
  { key_id: Type.String(), api_key: Type.String({ description: "Shown once." }) },
  { $id: "NewKey" },
);

const EXAMPLE_ID = "key_4kWqZ7vT1mXcR9bN";

/** Throws 404 for a text that cannot be a key's id. */
const keyIdParameter: PathParameter<string> = {
  description: "The key's id.",
  example: EXAMPLE_ID,
  read(text) {
    if (text === null || !/^[\x21-\x7e]{1,128}$/.test(text)) throw noSuch("key");
    return text;
  },
};

const EXAMPLE = {
  key_id: EXAMPLE_ID,
  prefix: "wb_7hQk",
  name: "shop, production",
  created_at: "2026-11-21T07:30:00Z",
  last_used_at: "2026-11-22T09:00:00Z",
  expires_at: null,
  scopes: ["send", "read"],
} as const;

/** The members of a new key in the audit log. */
export const NEW_KEY_SHOWN: AuditShown = { body: ["name", "expires_at", "scopes"], answer: ["key_id"] };

type Keys = Pick<TenantRegistry, "createKey" | "createOwnKey" | "keys" | "revokeKey">;

/** `/dash/api/tenants/{id}/keys` and `/v1/keys`: a key is shown once, when it is created. */
export function keyEndpoints({ registry }: { readonly registry: Keys }): readonly Endpoint[] {
  return [
    ...managedEndpoints({
      method: "POST",
      path: "keys",
      name: "create_key",
      operation: "createKey",
      summary: "Make a key, which is shown this once",
      description:
        "Requests with a key that has expired are refused with 401. Without `scopes` an operator's key allows everything, and " +
        `a tenant's what the calling key does, which is also the most it can. Tenants make up to ${ownLimits.keysMax} keys.`,
      body: { optional: keyBody },
      audit: NEW_KEY_SHOWN,
      answers: {
        201: {
          description: "The key.",
          schema: NewKey,
          examples: [{ key_id: EXAMPLE_ID, api_key: "wb_7hQk2mWnR4vXzT9pLcY6bJdFgS3aEu8N" }],
        },
      },
      fails: [409],
      async handle({ door, tenantId, self, body }) {
        const expiresAt = parseExpiry(body?.expires_at ?? null, door.ports.clock.nowMs());
        const options = { name: parseName(body?.name ?? null), expiresAt, scopes: readScopes(body, self) };
        const made = self === null ? registry.createKey(tenantId, options) : registry.createOwnKey(tenantId, options);
        return reply(201, requireResult(await made));
      },
    }),
    ...managedEndpoints({
      method: "GET",
      path: "keys",
      name: "keys",
      operation: "listKeys",
      summary: "List a tenant's keys, without the keys themselves",
      scope: "manage",
      answers: {
        200: {
          description: "All of them.",
          schema: listSchema("KeyList", "keys", Key),
          examples: [{ keys: [EXAMPLE] }],
        },
      },
      handle: async ({ tenantId }) => reply(200, { keys: requireResult(await registry.keys(tenantId)) }),
    }),
    ...revocation(registry),
  ];
}

function revocation(registry: Keys): readonly Endpoint[] {
  return managedEndpoints({
    method: "DELETE",
    path: "keys/:key_id",
    name: "revoke_key",
    operation: "revokeKey",
    summary: "Revoke a key, on every process within a second",
    description: "Only an operator can revoke the last key that allows `manage` and has not expired.",
    params: { key_id: keyIdParameter },
    answers: { 204: { description: "Done.", schema: null } },
    fails: [404, 409],
    async handle({ tenantId, self, params: { key_id } }) {
      const revoked = await registry.revokeKey(tenantId, key_id, { isOwn: self !== null });
      if (revoked.kind === "last") {
        throw new ApiError(409, "this is the last key that allows manage: make another one first, or ask an operator");
      }
      requireResult(revoked);
      return reply(204, null);
    },
  });
}

/** Reads the scopes; null: all. Throws an `ApiError` 403 for scopes that the calling key itself lacks. */
function readScopes(body: Static<typeof keyBody> | null, self: Self | null): readonly Scope[] | null {
  const given: unknown = body?.scopes ?? null;
  // The schema admits only scopes.
  const wanted = given as readonly Scope[] | null;
  if (self === null) return wanted;
  const { scopes } = self.key;
  const beyond = wanted?.filter((scope) => !scopes.has(scope)) ?? [];
  if (beyond.length > 0) {
    throw new ApiError(
      "scope_missing",
      `a key cannot give what it lacks itself: this one lacks the scope ${beyond.join(", ")}`,
    );
  }
  return wanted ?? [...scopes];
}

/** Throws an `ApiError` 400 unless the time exists and lies in the future. */
function parseExpiry(text: unknown, nowMs: number): Date | null {
  if (typeof text !== "string") return null;
  const unixMs = Date.parse(text);
  if (Number.isNaN(unixMs)) throw new ApiError(400, "expires_at must be a time to come, as 2027-01-01T00:00:00Z");
  if (unixMs <= nowMs) throw new ApiError(400, "expires_at is over already");
  return new Date(unixMs);
}

/** Throws an `ApiError` 400 for a blank name. */
function parseName(name: unknown): string | null {
  if (typeof name !== "string") return null;
  if (name.trim() === "") throw new ApiError(400, "name must not be blank");
  return name;
}
