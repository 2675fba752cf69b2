import type { JobIds } from "../domain/ids.ts";
import type { RateState } from "../domain/jobs/queue.ts";
import type { Operator } from "../domain/tenants/operator.ts";
import type { ApiKey } from "../domain/tenants/tenant.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import type { Span } from "../domain/tracing.ts";
import { type ApiError, BodyGivenUp } from "./api-error.ts";
import type { BodyHold, Caller } from "./body-room.ts";
import { codeOfStatus, toTold } from "./error-codes.ts";
import { LARGE_ANSWER_LENGTH, type LargeAnswer } from "./large-answers.ts";
import { JSON_TYPE, PROBLEM_TYPE, toProblem, wantsProblem } from "./problem.ts";

/** The encodings accepted for request bodies (RFC 9110, 12.5.3). */
const ACCEPTED_ENCODINGS = "gzip, identity";
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** One request on its way to its answer, with the headers that every answer carries. */
export class Exchange {
  /** The caller, once it is known. */
  caller: Caller = "stranger";
  /** The declared length of the body. Null: the request declares none. Undefined: not looked up yet. */
  declaredBytes: number | null | undefined = undefined;
  /** The memory reserved for the body. */
  bodyHold: BodyHold | null = null;
  /** Null: the answer is not large, or not made for this request alone. */
  largeAnswer: LargeAnswer | null = null;
  /** Whether the request was counted in the tenant's rate window by a call of its own. */
  isCounted = false;
  /** The tenant's rate window, once the request has been counted. */
  rate: RateState | null = null;
  /** Detail for the audit log beside the path, without secrets. */
  auditDetail: JsonObject = {};
  newTenantId: string | null = null;
  /** The job that the request is to queue; null: none, or a batch. */
  jobId: string | null = null;
  /** How many jobs a batch has queued so far. */
  jobsQueued = 0;
  /** Null: the request is not traced. */
  span: Span | null = null;
  /** The operator who calls, once known. */
  operator: Operator | null = null;
  /** The key that a tenant calls with, once known. */
  apiKey: ApiKey | null = null;
  /** How a 401 tells the caller to authenticate (RFC 9110, 11.6.1). */
  challenge = 'ApiKey realm="waybill", header="X-API-Key"';
  /** Answers an error to a person with a page. It returns null for a program, which gets JSON. */
  errorPage: ((error: ApiError, headers: AnswerHeaders) => Response | null) | null = null;

  /** Headers of all answers of the endpoint, failures included; null: none. */
  endpointHeaders: AnswerHeaders | null = null;

  private id: string | null;

  constructor(
    readonly request: Request,
    private readonly jobIds: JobIds,
  ) {
    const given = request.headers.get("x-request-id");
    this.id = given !== null && REQUEST_ID.test(given) ? given : null;
  }

  /** The caller's X-Request-Id if it is usable, otherwise the id of the job that it queues, or else a new one. */
  get requestId(): string {
    this.id ??= this.jobIds.next();
    return this.id;
  }

  /** The request queues this job. Both share one id, so later records of the job also identify the request. */
  queues(jobId: string): void {
    this.jobId = jobId;
    this.id ??= jobId;
  }

  /** Answers with a body that is already JSON text. */
  jsonText(status: number, body: string, extra?: AnswerHeaders): Response {
    const headers: Record<string, string> = {
      "content-type": JSON_TYPE,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": this.requestId,
    };
    return this.finish(status, body, headers, extra);
  }

  json(status: number, body: unknown, extra?: AnswerHeaders): Response {
    const text = JSON.stringify(body);
    this.noteSize(text, this.caller);
    return this.jsonText(status, text, extra);
  }

  /** Answers with bytes made for this caller alone. `owner`: the caller charged for the memory, if another one. */
  file(status: number, bytes: Uint8Array<ArrayBuffer>, extra: AnswerHeaders, owner = this.caller): Response {
    this.noteSize(bytes, owner);
    return this.body(status, bytes, extra);
  }

  private noteSize(body: LargeAnswer["body"], caller: Caller): void {
    if (body.length > LARGE_ANSWER_LENGTH) this.largeAnswer = { body, caller };
  }

  /** @param members The first parts of the names that the request's body and query can have. */
  error(error: ApiError, members: ReadonlySet<string> = NO_MEMBERS, headers?: AnswerHeaders): Response {
    const { code, param } = toTold(error, members);
    const extra: Record<string, string> = { ...headers, "x-error-code": code };
    if (error.status === 401) extra["www-authenticate"] = this.challenge;
    const waitSeconds = error.retryAfterSeconds ?? (error.status === 429 ? this.rate?.resetSeconds : undefined);
    if (waitSeconds !== undefined) extra["retry-after"] = String(waitSeconds);
    if (error.status === 415) extra["accept-encoding"] = ACCEPTED_ENCODINGS;
    if (error instanceof BodyGivenUp) extra["connection"] = "close";
    const page = this.errorPage?.(error, extra) ?? null;
    if (page !== null) return page;
    if (!wantsProblem(this.request)) return this.json(error.status, { error: error.message, ...error.members }, extra);
    return this.json(error.status, toProblem(error, { code, param }), { ...extra, "content-type": PROBLEM_TYPE });
  }

  /** Answers without a body, or with one that is not JSON. */
  body(status: number, body: AnswerBody, extra: AnswerHeaders): Response {
    const headers = { "x-content-type-options": "nosniff", "x-request-id": this.requestId };
    return this.finish(status, body, headers, extra);
  }

  private finish(status: number, body: AnswerBody, headers: Record<string, string>, extra?: AnswerHeaders): Response {
    if (this.endpointHeaders !== null) Object.assign(headers, this.endpointHeaders);
    if (extra !== undefined) Object.assign(headers, extra);
    if (status >= 400) headers["x-error-code"] ??= codeOfStatus(status);
    if (this.rate !== null) {
      const { limit, remaining, resetSeconds } = this.rate;
      headers["ratelimit-limit"] = String(limit);
      headers["ratelimit-remaining"] = String(remaining);
      headers["ratelimit-reset"] = String(resetSeconds);
      // draft-ietf-httpapi-ratelimit-headers-11: the same as structured fields (RFC 9651).
      headers["ratelimit-policy"] = `"plan";q=${limit};w=60`;
      headers["ratelimit"] = `"plan";r=${remaining};t=${resetSeconds}`;
    }
    return new Response(body, { status, headers });
  }
}

const NO_MEMBERS: ReadonlySet<string> = new Set();

export type AnswerBody = string | Uint8Array<ArrayBuffer> | Bun.BunFile | ReadableStream<Uint8Array> | null;

export type AnswerHeaders = Readonly<Record<string, string>>;
