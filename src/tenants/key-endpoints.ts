import { Type } from "@sinclair/typebox";
import { type Endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../http/failures.ts";
import { type PathParameter, tenantIdParameter } from "../http/parameters.ts";
import { listOf, Timestamp } from "../http/schemas.ts";
import { noSuch, resultOf } from "../http/store-results.ts";
import type { TenantRegistry } from "./registry.ts";

const Key = Type.Object({ key_id: Type.String(), prefix: Type.String(), created_at: Timestamp }, { $id: "Key" });

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
      params: { id: tenantIdParameter },
      answers: {
        201: { description: "The key.", schema: NewKey, examples: [{ key_id: "k1", api_key: "wb_live_a1b2c3" }] },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      handle: async ({ params: { id } }) => reply(201, resultOf(await registry.createKey(id))),
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
          examples: [{ keys: [{ key_id: "k1", prefix: "wb_live_a1", created_at: "2026-11-21T07:30:00Z" }] }],
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
