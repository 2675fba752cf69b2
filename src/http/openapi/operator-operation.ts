import type { TSchema } from "@sinclair/typebox";
import type { JsonObject } from "../../domain/json.ts";
import { answer, emptyAnswer, errors, pathParameter, queryParameter, type Success } from "./answers.ts";

export interface OperatorOperation {
  readonly id: string;
  readonly tag: "Tenants" | "Plans" | "Sandbox" | "Chat";
  readonly summary: string;
  readonly parameters?: readonly JsonObject[];
  readonly body?: TSchema;
  readonly status: "200" | "201" | "204";
  readonly answers: Omit<Success, "description"> | null;
  /** Other successes, by their status. */
  readonly alsoAnswers?: Readonly<Record<string, Success>>;
  /** Beside 401, 429 and 500, and 400 and 413 where there is a body. */
  readonly alsoFails?: Readonly<Record<string, string>>;
}

export const tenantId = pathParameter("id", "A tenant's id.", "acme");
export const paging = [
  queryParameter("cursor", "The `next_cursor` of the previous page.", { type: "string" }),
  queryParameter("limit", "Page size; above 500 counts as 500.", { type: "integer", minimum: 1, default: 100 }),
];
export const NOT_FOUND = { "404": "OperatorNotFound" } as const;

const REFUSED = { "401": "OperatorUnknown", "429": "OperatorSlowed" } as const;

/** A call of the operator API. */
export function operation({
  id,
  tag,
  summary,
  parameters,
  body,
  status,
  answers,
  alsoAnswers = {},
  alsoFails,
}: OperatorOperation): JsonObject {
  const bodyErrors: Record<string, string> =
    body === undefined ? {} : { "400": "OperatorBadRequest", "413": "OperatorTooLarge" };
  return {
    operationId: id,
    tags: [tag],
    summary,
    security: [{ operator: [] }],
    ...(parameters === undefined ? null : { parameters }),
    ...(body === undefined ? null : { requestBody: toRequestBody(body) }),
    responses: {
      [status]: answers === null ? emptyAnswer("Done.") : answer({ description: "Done.", ...answers }),
      ...Object.fromEntries(Object.entries(alsoAnswers).map(([code, success]) => [code, answer(success)])),
      ...errors({ ...REFUSED, ...bodyErrors, ...alsoFails, "500": "OperatorInternalError" }),
    },
  };
}

/** A TypeBox schema is JSON Schema once its symbols are gone. */
function toRequestBody(body: TSchema): JsonObject {
  const schema: JsonObject = JSON.parse(JSON.stringify(body));
  return { required: true, content: { "application/json": { schema } } };
}
