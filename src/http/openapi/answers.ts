import type { JsonObject } from "../../domain/json.ts";

/** Headers, error answers and the small builders that the path tables are written with. */

export const headers: JsonObject = {
  RequestId: {
    description: "The caller's X-Request-Id, or a new one.",
    schema: { type: "string" },
    example: "order-1042",
  },
  RateLimit: { description: "Requests that the plan allows in 60 seconds.", schema: { type: "integer" }, example: 100 },
  RateRemaining: { description: "Requests left in the window.", schema: { type: "integer" }, example: 99 },
  RateReset: {
    description: "Seconds until the window has room again (429) or is empty (otherwise).",
    schema: { type: "integer" },
    example: 60,
  },
  RetryAfter: { description: "Seconds to wait.", schema: { type: "integer" }, example: 12 },
  IdempotencyReplayed: {
    description: "Present when this is the answer to an earlier request with the same key.",
    schema: { type: "string", const: "true" },
  },
  Challenge: { description: "How to authenticate.", schema: { type: "string" } },
};

const traced: JsonObject = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };

const limited: JsonObject = {
  ...traced,
  "RateLimit-Limit": { $ref: "#/components/headers/RateLimit" },
  "RateLimit-Remaining": { $ref: "#/components/headers/RateRemaining" },
  "RateLimit-Reset": { $ref: "#/components/headers/RateReset" },
};

/** Errors by the name that the path tables use. */
export const responses: JsonObject = {
  BadRequest: failure("The request is malformed.", "to_address is required", limited),
  UnknownKey: failure("The API key is missing or unknown.", "the API key is missing or unknown: send it as X-API-Key", {
    ...traced,
    "WWW-Authenticate": { $ref: "#/components/headers/Challenge" },
  }),
  Forbidden: failure(
    "The channel is not enabled, or a permission is missing.",
    "the channel email is not enabled for this tenant",
    limited,
  ),
  NoSuchJob: failure("There is no such job, or it belongs to another tenant.", "there is no such job", limited),
  NoSuchDomain: failure("There is no such domain, or it is another tenant's.", "there is no such domain", limited),
  NoSuchClass: failure(
    "Google has no such class, or it is not one of the tenant's.",
    "there is no such class",
    limited,
  ),
  NoSuchPass: failure("There is no such pass, or it is another tenant's.", "there is no such pass", limited),
  NoTokens: failure("No token is left.", "no token is left: a wallet pass costs 1, ask for more", limited),
  TooLarge: failure("The body is larger than 10 MiB.", "the body is larger than 10485760 bytes", limited),
  Unprocessable: {
    ...failure(
      "The inline HTML cannot be sent (with `violations`), the sender's domain is not verified, or the Idempotency-Key " +
        "was used with another body.",
      "the inline HTML cannot be sent: see violations",
      limited,
    ),
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/ContentError" },
        example: {
          error: "the inline HTML cannot be sent: see violations",
          violations: [{ rule: "script", message: "the HTML contains a <script> element" }],
        },
      },
    },
  },
  TooManyRequests: failure(
    "The rate limit is reached.",
    "too many requests: wait for the seconds that Retry-After names",
    {
      ...limited,
      "Retry-After": { $ref: "#/components/headers/RetryAfter" },
    },
  ),
  InternalError: failure(
    "Something failed on this side. Safe to repeat with the same Idempotency-Key.",
    "internal error",
    limited,
  ),
  NoSuchLink: failure("The token is unknown or was altered.", "there is no such link", traced),
  UnknownPass: failure(
    "There is no such pass, or its token is another.",
    "there is no such pass, or its token is another: send it as Authorization: ApplePass",
    {
      ...traced,
      "WWW-Authenticate": { $ref: "#/components/headers/Challenge" },
    },
  ),
  PassNotSigned: failure("The pass exists, but was never signed.", "the pass has not been signed yet", traced),
  TooManyDevices: failure(
    "The pass is on as many devices as one can be.",
    "The pass is on as many devices as one pass can be.",
    traced,
  ),
  DeviceBadRequest: failure("The body is malformed.", "the body is not valid JSON", traced),
  DeviceTooLarge: failure("The body is too large.", "the body is larger than 4096 bytes", traced),
  PublicInternalError: failure("Something failed on this side. Safe to repeat.", "internal error", traced),
  WebhookBadRequest: failure("The request is malformed.", "the body must be a JSON object", traced),
  WebhookUnsigned: failure(
    "The signature is missing or does not fit the body. Nothing is stored.",
    "X-Hub-Signature-256 is missing, or does not fit the body and the webhook secret",
    { ...traced, "WWW-Authenticate": { $ref: "#/components/headers/Challenge" } },
  ),
  WebhookForbidden: failure(
    "The verify token is wrong.",
    "hub.mode must be subscribe, and hub.verify_token the webhook secret",
    traced,
  ),
  WebhookTooLarge: failure("The body is larger than 3 MiB.", "the body is larger than 3145728 bytes", traced),
  WebhookCrowded: failure(
    "More large calls arrive at one time than there is room for.",
    "too many large calls arrive at the moment: try again",
    traced,
  ),
  OperatorBadRequest: failure("The request is malformed.", "unknown field: colour", traced),
  OperatorUnknown: failure(
    "The operator token is missing or wrong.",
    "the operator token is missing or wrong: send it as Authorization: Bearer",
    {
      ...traced,
      "WWW-Authenticate": { $ref: "#/components/headers/Challenge" },
    },
  ),
  MetricsUnknown: failure(
    "The server has a metrics token, and it is missing or wrong.",
    "the metrics token is missing",
    {
      ...traced,
      "WWW-Authenticate": { $ref: "#/components/headers/Challenge" },
    },
  ),
  MetricsForbidden: failure(
    "The server has none, and the request comes from another machine.",
    "metrics are for programs of this machine",
    traced,
  ),
  MetricsElsewhere: failure("Metrics have an address of their own.", "there is nothing at this address", traced),
  OperatorSlowed: failure("Too many wrong tokens came from this address.", "too many wrong operator tokens", {
    ...traced,
    "Retry-After": { $ref: "#/components/headers/RetryAfter" },
  }),
  OperatorNotFound: failure("It does not exist.", "there is no such tenant", traced),
  OperatorConflict: failure(
    "The name is taken, or the state forbids the call.",
    "there is a tenant with this id already",
    traced,
  ),
  OperatorTooLarge: failure("The body is larger than 10 MiB.", "the body is larger than 10485760 bytes", traced),
  ExportUnderWay: failure(
    "Another export is under way, or too many wrong tokens came from this address.",
    "an export is under way already: try again when it has ended",
    traced,
  ),
  OperatorInternalError: failure("Something failed on this side.", "internal error", traced),
};

function failure(description: string, example: string, answerHeaders: JsonObject): JsonObject {
  const schema = { $ref: "#/components/schemas/Error" };
  return {
    description,
    headers: answerHeaders,
    content: { "application/json": { schema, example: { error: example } } },
  };
}

/** References to the errors of a call, by status. */
export function errors(byStatus: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]),
  );
}

export interface Success {
  readonly description: string;
  /** Name of a schema in components. */
  readonly schema: string;
  readonly example?: JsonObject;
  readonly examples?: JsonObject;
}

/** A tenant's answer: it carries the rate window. */
export function tenantAnswer(success: Success, extraHeaders: JsonObject = {}): JsonObject {
  return { ...answer(success), headers: { ...limited, ...extraHeaders } };
}

export function answer({ description, schema, example, examples }: Success): JsonObject {
  const media: JsonObject = {
    schema: { $ref: `#/components/schemas/${schema}` },
    ...(example === undefined ? null : { example }),
    ...(examples === undefined ? null : { examples }),
  };
  return { description, headers: traced, content: { "application/json": media } };
}

/** An answer without a body. */
export function emptyAnswer(description: string): JsonObject {
  return { description, headers: traced };
}

/** An answer that is not JSON. */
export function textAnswer(description: string, mediaType: string): JsonObject {
  return { description, headers: traced, content: { [mediaType]: { schema: { type: "string" } } } };
}

export function pathParameter(name: string, description: string, example: string): JsonObject {
  return { name, in: "path", required: true, description, schema: { type: "string" }, example };
}

export function queryParameter(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: "query", required: false, description, schema };
}
