import type { TSchema } from "@sinclair/typebox";
import type { Json } from "../domain/texts/json.ts";

/** An error answer as the document shows it. */
export interface Failure {
  /** Its name under `components.responses`. */
  readonly name: string;
  readonly description: string;
  readonly example: Json;
  /** Whether the tenant's rate window is known at this point and appears in the headers. */
  readonly isLimited: boolean;
  /** Headers specific to this failure. */
  readonly headers: readonly ("WWW-Authenticate" | "Retry-After" | "Accept-Encoding")[];
  /** Schema of its body; null stands for `{error}`. */
  readonly schema: TSchema | null;
  /** Whether browsers get a page instead. */
  readonly hasPage: boolean;
}

type Extras = Partial<Pick<Failure, "headers" | "schema" | "hasPage">> & {
  readonly members?: Readonly<Record<string, Json>>;
};

/** A failure of an endpoint that tenants call. */
export function tenantFailure(name: string, description: string, error: string, extras: Extras = {}): Failure {
  return { ...failure(name, description, error, extras), isLimited: true };
}

export function failure(name: string, description: string, error: string, extras: Extras = {}): Failure {
  const { headers = [], schema = null, hasPage = false, members = {} } = extras;
  return { name, description, example: { error, ...members }, isLimited: false, headers, schema, hasPage };
}

export const KEY_CONFLICT_TEXT = "this Idempotency-Key was used before with another body";
const KEY_CONFLICT_SAYS = "The Idempotency-Key was used with another body.";

export const BAD_REQUEST = tenantFailure("BadRequest", "The request is malformed.", "to_address is required");
export const UNKNOWN_KEY = failure(
  "UnknownKey",
  "The API key is missing or unknown.",
  "the API key is missing or unknown: send it as X-API-Key",
  { headers: ["WWW-Authenticate"] },
);
export const FORBIDDEN = tenantFailure(
  "Forbidden",
  "The key lacks the scope, the channel is not enabled, its sends are on hold, or a permission is missing.",
  "the channel email is not enabled for this tenant",
);
export const LACKS_SCOPE = tenantFailure(
  "LacksScope",
  "The key lacks the scope that the call needs.",
  "this API key lacks the scope read, which the call needs",
);
export const NOT_FOUND = tenantFailure("NotFound", "It does not exist.", "there is no such template");
export const CONFLICT = tenantFailure(
  "Conflict",
  "The state forbids the call, or there is no room for more.",
  "a tenant has at most 100 keys: revoke one that is not used",
);
export const KEY_CONFLICT = tenantFailure("KeyConflict", KEY_CONFLICT_SAYS, KEY_CONFLICT_TEXT);
export const TOO_LARGE = tenantFailure(
  "TooLarge",
  "The body is larger than the call takes (10 MiB for most).",
  "the body is larger than 10485760 bytes",
);
const ENCODED = [
  "The body has a `Content-Encoding` other than gzip.",
  "the Content-Encoding of a body must be gzip, or none",
  { headers: ["Accept-Encoding"] },
] as const;
export const UNKNOWN_ENCODING = tenantFailure("UnknownEncoding", ...ENCODED);
export const OPERATOR_UNKNOWN_ENCODING = failure("OperatorUnknownEncoding", ...ENCODED);
const SLOW = [
  "The body came too slowly.",
  "the body came too slowly: nothing for 10 seconds, or less than 64 kB a second",
] as const;
export const TOO_SLOW = tenantFailure("TooSlow", ...SLOW);
export const OPERATOR_TOO_SLOW = failure("OperatorTooSlow", ...SLOW);
export const WEBHOOK_TOO_SLOW = failure("WebhookTooSlow", ...SLOW);
export const BODIES_CROWDED = tenantFailure(
  "BodiesCrowded",
  "More large bodies arrive at one time than there is room for.",
  "the service reads as many large requests as it has memory for: try again",
  { headers: ["Retry-After"] },
);
export const OPERATOR_BODIES_CROWDED = failure(
  "OperatorBodiesCrowded",
  "More large bodies arrive at one time than there is room for.",
  "too many large calls arrive at the moment: try again",
  { headers: ["Retry-After"] },
);
export const TOO_MANY_REQUESTS = tenantFailure(
  "TooManyRequests",
  "The rate limit is reached.",
  "too many requests: wait for the seconds that Retry-After names",
  { headers: ["Retry-After"] },
);
export const INTERNAL_ERROR = tenantFailure(
  "InternalError",
  "Something failed on this side. Safe to repeat with the same Idempotency-Key.",
  "internal error",
);
export const PUBLIC_BAD_REQUEST = failure(
  "PublicBadRequest",
  "A parameter has another value.",
  "for must be one of all, tenant, operator",
);
export const PUBLIC_INTERNAL_ERROR = failure(
  "PublicInternalError",
  "Something failed on this side. Safe to repeat.",
  "internal error",
);
export const OPERATOR_BAD_REQUEST = failure("OperatorBadRequest", "The request is malformed.", "unknown field: colour");
export const OPERATOR_UNKNOWN = failure(
  "OperatorUnknown",
  "The operator token is missing or wrong. `Retry-After` is there once too many wrong ones came from this address.",
  "the operator token is missing or wrong: send it as Authorization: Bearer",
  { headers: ["WWW-Authenticate", "Retry-After"] },
);
export const OPERATOR_FORBIDDEN = failure(
  "OperatorForbidden",
  "The operator may only read.",
  "this operator may only read: the call needs an operator with the role write",
);
export const OPERATOR_NOT_FOUND = failure("OperatorNotFound", "It does not exist.", "there is no such tenant");
export const OPERATOR_CONFLICT = failure(
  "OperatorConflict",
  "The name is taken, or the state forbids the call.",
  "there is a tenant with this id already",
);
export const OPERATOR_KEY_CONFLICT = failure("OperatorKeyConflict", KEY_CONFLICT_SAYS, KEY_CONFLICT_TEXT);
export const OPERATOR_QUEUE_FULL = failure(
  "OperatorQueueFull",
  "The tenant's share of the queue is used up.",
  "your share of the queue is used up: it holds as many unfinished jobs as it may",
  { headers: ["Retry-After"] },
);
export const OPERATOR_TOO_LARGE = failure(
  "OperatorTooLarge",
  "The body is larger than the call takes (10 MiB for most).",
  "the body is larger than 10485760 bytes",
);
export const OPERATOR_INTERNAL_ERROR = failure(
  "OperatorInternalError",
  "Something failed on this side.",
  "internal error",
);
