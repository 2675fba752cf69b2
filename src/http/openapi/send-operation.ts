import type { JsonObject } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import { errors, tenantAnswer } from "./answers.ts";

export interface SendOperation {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** Name of the body's schema in components. */
  readonly schema: string;
  /** Bodies that are taken, by name. */
  readonly examples: JsonObject;
  /** Beside 400, 401, 403, 413, 422, 429 and 500. */
  readonly alsoFails?: Readonly<Record<string, string>>;
}

export const requestId: JsonObject = {
  name: "X-Request-Id",
  in: "header",
  description: "1 to 128 of A-Z, a-z, 0-9, dot, hyphen and underscore: given back in the answer.",
  schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
};

const idempotencyKey: JsonObject = {
  name: "Idempotency-Key",
  in: "header",
  description: "1 to 255 printable ASCII characters, kept for 24 hours. A refused send (4xx) releases it.",
  schema: { type: "string", minLength: 1, maxLength: limits.idempotencyKeyCharsMax },
  example: "order-1042-receipt",
};

/** A call that queues a job. */
export function sendOperation({ id, summary, description, schema, examples, alsoFails }: SendOperation): JsonObject {
  return {
    operationId: id,
    tags: ["Send"],
    summary,
    description,
    security: [{ apiKey: [] }],
    parameters: [idempotencyKey, requestId],
    requestBody: {
      required: true,
      content: { "application/json": { schema: { $ref: `#/components/schemas/${schema}` }, examples } },
    },
    responses: {
      "202": tenantAnswer(
        {
          description: "Queued.",
          schema: "PendingJob",
          example: { job_id: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11", status: "pending" },
        },
        { "Idempotency-Replayed": { $ref: "#/components/headers/IdempotencyReplayed" } },
      ),
      ...errors({
        "400": "BadRequest",
        "401": "UnknownKey",
        "403": "Forbidden",
        "413": "TooLarge",
        "422": "Unprocessable",
        "429": "TooManyRequests",
        "500": "InternalError",
        ...alsoFails,
      }),
    },
  };
}
