import { Type } from "@sinclair/typebox";
import { OPERATOR_ROLES } from "../domain/tenants/operator.ts";
import { ApiError } from "../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import { failure, OPERATOR_NOT_FOUND } from "../http/failures.ts";
import { pathText } from "../http/parameters.ts";
import { enumSchema, listSchema, oneLine, Timestamp } from "../http/schemas.ts";
import { requireResult } from "../http/store-results.ts";
import type { OperatorRepository } from "./operator-repository.ts";

const Role = enumSchema(OPERATOR_ROLES, "`read` may only look; `write` may change things, too.");

const OPERATOR = {
  operator_id: Type.String(),
  name: Type.String(),
  role: Role,
  created_at: Timestamp,
};

const OperatorRecord = Type.Object(
  {
    ...OPERATOR,
    last_used_at: Type.Union([Timestamp, Type.Null()], {
      description: "When the token was last used, to about a minute; null: never.",
    }),
  },
  { $id: "Operator" },
);

const NewOperator = Type.Object(
  { ...OPERATOR, token: Type.String({ description: "Shown once." }) },
  { $id: "NewOperator" },
);

const operatorBody = Type.Object(
  {
    name: oneLine("1 to 100 characters without control characters", 100, 1),
    role: Type.Union(
      OPERATOR_ROLES.map((role) => Type.Literal(role)),
      { description: `one of ${OPERATOR_ROLES.join(", ")}` },
    ),
  },
  { additionalProperties: false, examples: [{ name: "ann", role: "write" }] },
);

const EXAMPLE = {
  operator_id: "op_7RkQ0pZlT2m5AbCd",
  name: "ann",
  role: "write",
  created_at: "2026-11-21T07:30:00Z",
} as const;

const NAME_TAKEN = failure(
  "OperatorNameTaken",
  "The name is taken, or there are too many operators.",
  "there is an operator of this name already",
);

type Operators = Pick<OperatorRepository, "create" | "all" | "delete">;

/** `/dash/api/operators`: the operators, who may call this API. A token is shown once, when its operator is added. */
export function operatorEndpoints({ operatorAccounts }: { readonly operatorAccounts: Operators }): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "POST",
      path: "/dash/api/operators",
      name: "operator",
      operation: "createOperator",
      tag: "Operators",
      summary: "Add an operator, whose token is shown this once",
      body: operatorBody,
      audit: { body: ["name", "role"], answer: ["operator_id"] },
      answers: {
        201: { description: "The operator.", schema: NewOperator, examples: [{ ...EXAMPLE, token: "wbo_a1b2c3" }] },
      },
      fails: { 409: NAME_TAKEN },
      async handle({ body: { name, role } }) {
        if (name.trim() === "") throw new ApiError(400, "name must not be blank");
        const made = await operatorAccounts.create(name, role);
        if (made.kind === "taken") throw new ApiError("already_exists", "there is an operator of this name already");
        if (made.kind === "too_many")
          throw new ApiError("limit_reached", `there are ${made.max} operators: delete one first`);
        return reply(201, made.value);
      },
    }),
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/operators",
      name: "operator",
      operation: "listOperators",
      tag: "Operators",
      summary: "List the operators, without their tokens",
      description: "All but `root`, whose token is the setting `OPERATOR_TOKEN`.",
      answers: {
        200: {
          description: "All of them, by name.",
          schema: listSchema("OperatorList", "operators", OperatorRecord),
          examples: [{ operators: [{ ...EXAMPLE, last_used_at: "2026-11-22T09:00:00Z" }] }],
        },
      },
      handle: async () => reply(200, { operators: await operatorAccounts.all() }),
    }),
    operatorEndpoint({
      method: "DELETE",
      path: "/dash/api/operators/:id",
      name: "operator",
      operation: "deleteOperator",
      tag: "Operators",
      summary: "Delete an operator; the token is refused on every process within a second",
      params: { id: pathText("The operator's id.", EXAMPLE.operator_id) },
      answers: { 204: { description: "Done.", schema: null } },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ params: { id } }) {
        requireResult(await operatorAccounts.delete(id));
        return reply(204, null);
      },
    }),
  ];
}
