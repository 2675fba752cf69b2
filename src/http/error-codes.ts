/** The statuses of refusals. */
export type RefusalStatus = 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503;

interface Meaning {
  readonly status: RefusalStatus;
  /** The `title` of a problem (RFC 9457, 3.1.3): the same at every occurrence, with no full stop. */
  readonly title: string;
}

/**
 * Why a request is refused, for programs: `X-Error-Code`, and `code` of a problem and of a batch's errors. Codes are as stable
 * as statuses (docs/versions.md): within a major release, none is removed or changes its meaning or status; new ones are added.
 */
export const ERROR_CODES = {
  bad_request: { status: 400, title: "The request is malformed" },
  invalid_json: { status: 400, title: "The body is not valid JSON, or has more in it than is read" },
  invalid_member: {
    status: 400,
    title: "A member of the body, or a parameter, is missing or has a value that it may not have",
  },
  unknown_member: {
    status: 400,
    title: "The body has a member, or the query a parameter, that the call does not know",
  },
  unknown_template: { status: 400, title: "The message names a template that does not exist" },
  invalid_cursor: { status: 400, title: "The cursor is not one that was given out" },
  invalid_idempotency_key: { status: 400, title: "The Idempotency-Key is empty, too long or not printable ASCII" },
  wrong_content_type: { status: 400, title: "The Content-Type is not one that the call takes" },
  unauthorized: { status: 401, title: "The call's credentials or signature are missing or wrong" },
  invalid_api_key: { status: 401, title: "The API key is missing, unknown, revoked or expired" },
  invalid_operator_token: { status: 401, title: "The operator token is missing or wrong" },
  insufficient_tokens: { status: 402, title: "No token is left for a pass" },
  forbidden: { status: 403, title: "The caller may not do this" },
  scope_missing: { status: 403, title: "The API key lacks the scope that the call needs" },
  channel_not_enabled: { status: 403, title: "The channel is not enabled for the tenant" },
  sends_on_hold: { status: 403, title: "The tenant's sends on the channel are on hold" },
  permission_missing: { status: 403, title: "The tenant lacks a permission that the message needs" },
  read_only_operator: { status: 403, title: "The operator may only read" },
  not_found: { status: 404, title: "There is nothing at this address" },
  no_such_alias: { status: 404, title: "There is no such alias" },
  no_such_class: { status: 404, title: "There is no such class" },
  no_such_credentials: { status: 404, title: "There are no such credentials" },
  no_such_domain: { status: 404, title: "There is no such domain" },
  no_such_file: { status: 404, title: "There is no such file" },
  no_such_job: { status: 404, title: "There is no such job" },
  no_such_key: { status: 404, title: "There is no such key" },
  no_such_link: { status: 404, title: "There is no such link" },
  no_such_operator: { status: 404, title: "There is no such operator" },
  no_such_pass: { status: 404, title: "There is no such pass" },
  no_such_suppression: { status: 404, title: "The address is not suppressed" },
  no_such_template: { status: 404, title: "There is no such template" },
  no_such_tenant: { status: 404, title: "There is no such tenant" },
  no_such_webhook: { status: 404, title: "There is no such webhook" },
  method_not_allowed: { status: 405, title: "The address does not take this method" },
  request_timeout: { status: 408, title: "The body came too slowly" },
  conflict: { status: 409, title: "The state of what the call is about forbids it" },
  already_exists: { status: 409, title: "There is one of this name already" },
  limit_reached: { status: 409, title: "There are as many as there may be" },
  job_state: { status: 409, title: "The job has ended, has begun or does not wait, and so cannot be changed" },
  payload_too_large: { status: 413, title: "The body is larger than the call takes" },
  unsupported_encoding: { status: 415, title: "The body's Content-Encoding is not gzip" },
  unprocessable: { status: 422, title: "The request is well-formed and cannot be carried out" },
  html_violation: { status: 422, title: "The content breaks rules, which violations names" },
  domain_not_verified: { status: 422, title: "The domain that the tenant sends from is not verified" },
  reply_window_closed: { status: 422, title: "The recipient has not written within 24 hours" },
  idempotency_conflict: { status: 422, title: "The Idempotency-Key was used before with another body" },
  too_many_at_once: { status: 429, title: "Too many such calls of the caller are under way" },
  rate_limited: { status: 429, title: "The rate limit is reached" },
  queue_share_exceeded: { status: 429, title: "The tenant's share of the queue is used up" },
  daily_limit_reached: { status: 429, title: "As many have failed today as may" },
  internal_error: { status: 500, title: "Something failed on this side" },
  service_unreachable: { status: 500, title: "A part of the service cannot be reached, and nothing was done" },
  outcome_unknown: { status: 500, title: "It is not known whether the call took effect" },
  not_configured: { status: 500, title: "The service lacks credentials or settings for this" },
  unavailable: { status: 503, title: "The service cannot take the call at the moment" },
  not_ready: { status: 503, title: "A part that the process needs is down, or the process is stopping" },
} as const satisfies Readonly<Record<string, Meaning>>;

export type ErrorCode = keyof typeof ERROR_CODES;

const BY_STATUS: Readonly<Record<RefusalStatus, ErrorCode>> = {
  400: "bad_request",
  401: "unauthorized",
  402: "insufficient_tokens",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  408: "request_timeout",
  409: "conflict",
  413: "payload_too_large",
  415: "unsupported_encoding",
  422: "unprocessable",
  429: "too_many_at_once",
  500: "internal_error",
  503: "unavailable",
};

const OF_STATUSES: Readonly<Partial<Record<number, ErrorCode>>> = BY_STATUS;

/** Returns the code of an answer of which only the status is known. */
export function codeOfStatus(status: number): ErrorCode {
  return OF_STATUSES[status] ?? (status < 500 ? "bad_request" : "internal_error");
}

/** A refusal as the code that raised it describes it. */
export interface Refused {
  readonly status: RefusalStatus;
  readonly message: string;
  readonly code?: ErrorCode | undefined;
  /** The member of the body, or the parameter, that it is about, with its path in the body: `pass_data.fields[0].key`. */
  readonly param?: string | undefined;
}

/** The machine-readable part of a refusal. */
export interface Told {
  readonly code: ErrorCode;
  readonly param: string | null;
}

const ABOUT_MEMBERS: ReadonlySet<RefusalStatus> = new Set([400, 403, 422]);

/** @param members The first parts of the names that the refused body and query can have. */
export function toTold({ status, message, code, param }: Refused, members: ReadonlySet<string>): Told {
  const named = param ?? (ABOUT_MEMBERS.has(status) ? memberAhead(message, members) : null);
  return { code: code ?? (status === 400 && named !== null ? "invalid_member" : codeOfStatus(status)), param: named };
}

const AHEAD = /^(?<root>[A-Za-z_][\w-]*)(?:\.[\w-]+|\[[\w-]*\])*(?=[\s,:]|$)/;
const PARAM_CHARS_MAX = 200;

/**
 * Returns the member that a sentence begins with. Body checks report one sentence that begins with the member's path, and most
 * report it in no other form; a test enforces this.
 */
function memberAhead(message: string, members: ReadonlySet<string>): string | null {
  const found = AHEAD.exec(message);
  if (found === null || !members.has(found.groups?.["root"] ?? "")) return null;
  return found[0].slice(0, PARAM_CHARS_MAX);
}
