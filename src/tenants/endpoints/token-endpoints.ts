import { Type } from "@sinclair/typebox";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_CONFLICT, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { paging, tenantIdParameter } from "../../http/parameters.ts";
import { pageSchema, Timestamp } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { TenantRegistry } from "../registry.ts";
import { tokensBody } from "./body-schemas.ts";

const Balance = Type.Object({ balance: Type.Integer() }, { $id: "Balance" });

const Movement = Type.Object({
  amount: Type.Integer(),
  reason: Type.String(),
  job_id: Type.Union([Type.String(), Type.Null()]),
  balance: Type.Integer(),
  created_at: Timestamp,
});

const MOVEMENT = {
  amount: -1,
  reason: "wallet pass",
  job_id: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11",
  balance: 499,
  created_at: "2026-11-21T07:30:00Z",
};

/** `/dash/api/tenants/{id}/tokens`: the tokens that pay for wallet passes. */
export function tokenEndpoints({
  registry,
}: {
  readonly registry: Pick<TenantRegistry, "addTokens" | "tokenMovements">;
}): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "POST",
      path: "/dash/api/tenants/:id/tokens",
      name: "operator",
      operation: "addTokens",
      audit: { body: ["amount", "reason"], answer: ["balance"] },
      tag: "Tenants",
      summary: "Add tokens, or take them (a negative amount)",
      params: { id: tenantIdParameter },
      body: tokensBody,
      answers: { 200: { description: "What is left.", schema: Balance, examples: [{ balance: 500 }] } },
      fails: { 404: OPERATOR_NOT_FOUND, 409: OPERATOR_CONFLICT },
      async handle({ params: { id }, body: { amount, reason } }) {
        if (amount === 0) throw new ApiError(400, "amount must not be 0");
        const moved = await registry.addTokens(id, amount, reason);
        if (moved.kind !== "out_of_range") return reply(200, requireResult(moved));
        const why = amount < 0 ? `does not allow to take ${-amount}` : "would become too large";
        throw new ApiError(409, `The balance of ${moved.balance} tokens ${why}.`);
      },
    }),
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/tenants/:id/tokens",
      name: "operator",
      operation: "listTokenMovements",
      tag: "Tenants",
      summary: "Charges and top-ups, newest first",
      params: { id: tenantIdParameter },
      query: paging,
      answers: {
        200: {
          description: "One page.",
          schema: pageSchema("TokenMovementPage", "movements", Movement),
          examples: [{ movements: [MOVEMENT], next_cursor: null }],
        },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ params: { id }, query: { cursor, limit } }) {
        const { items, nextCursor } = requireResult(await registry.tokenMovements(id, cursor, limit));
        return reply(200, { movements: items, next_cursor: nextCursor });
      },
    }),
  ];
}
