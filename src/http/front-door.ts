import type { Clock } from "../domain/clock.ts";
import type { ContentStore } from "../domain/content-store.ts";
import { isOutage } from "../domain/errors.ts";
import type { JobIds } from "../domain/ids.ts";
import type { Batches } from "../domain/jobs/batch.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { PayloadStore } from "../domain/jobs/payload-store.ts";
import type { FrontQueue, IdempotencyKeys, QueueShare } from "../domain/jobs/queue.ts";
import type { JobSchedule } from "../domain/jobs/schedule.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { Operator } from "../domain/tenants/operator.ts";
import type { KeyHolder, Scope, Tenant, TenantDirectory } from "../domain/tenants/tenant.ts";
import { type Tracer, traceInLog } from "../domain/tracing.ts";
import { ApiError } from "./api-error.ts";
import type { AuditLog } from "./audit.ts";
import { readBearerToken } from "./bearer-token.ts";
import type { Caller } from "./body-room.ts";
import { CallerAddresses } from "./caller-addresses.ts";
import { CHANGES_PER_SECOND, ChangePace } from "./change-pace.ts";
import { type AnswerHeaders, Exchange } from "./exchange.ts";
import { KnownLimits } from "./known-limits.ts";
import { LargeAnswers } from "./large-answers.ts";
import type { MetricsReaders } from "./metrics-gate.ts";
import { OperatorGate, type OperatorGatePorts } from "./operator-gate.ts";
import { OutageLog } from "./outage-log.ts";
import type { Readiness } from "./readiness.ts";
import { type BodyBounds, type JsonBody, RequestBodies } from "./request-body.ts";
import type { MessageKind } from "./sending/acceptance.ts";

/** The dependencies that any endpoint may need. An endpoint receives the dependencies of its own folder separately. */
export interface DoorPorts extends ServiceAnswerPorts, OperatorGatePorts {
  readonly queue: Pick<FrontQueue, "admit" | "accept"> & IdempotencyKeys;
  /** Withdraws fallbacks whose message was refused. */
  readonly schedule: Pick<JobSchedule, "cancel">;
  readonly batches: Batches;
  /** Holds payloads that are too large for the queue. */
  readonly payloads: Pick<PayloadStore, "put" | "remove">;
  /** Holds files that jobs send. */
  readonly contents: Pick<ContentStore, "put" | "remove">;
  readonly directory: TenantDirectory;
  /** The audit log of operators' calls. */
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
  /** Absent: tracing is off. */
  readonly tracer?: Tracer;
  /** Counts tenants' calls for billing; absent: they are not counted. Returns at once. */
  readonly usage?: { note(tenantId: string, queued: number): void };
  /** Counts accepted jobs for the live overview; absent: they are not counted. Returns at once. */
  readonly watched?: { noteAccepted(channel: ChannelName, jobs: number): void };
  /** How many processes take requests at this address; they share the memory budget for large bodies. Default 1. */
  readonly processes?: number;
  /** Base address shown in the documentation; by default, the address that the request came to. */
  readonly publicUrl?: string | undefined;
  /** Addresses to report vulnerabilities to, in the order of preference; none if absent. */
  readonly securityContacts?: readonly string[];
  readonly version: string;
  /** Operators and monitoring have their own listener (`Server.listenApart`), and their paths are served only there. */
  readonly isAdminApart?: boolean;
  /** Request log lines beside errors; none if absent. */
  readonly requestLog?: RequestLog;
}

export interface RequestLog {
  /** The share of accepted jobs that gets a line, 0 to 1. */
  readonly logShare: number;
  /** Every request gets a line, at `debug`. */
  readonly logsRequests: boolean;
}

/** This process's answers to monitoring. */
export interface ServiceAnswerPorts {
  readonly readiness: Pick<Readiness, "look">;
  /** The Prometheus text exposition of this process. */
  metricsText(): Promise<string>;
  /** Callers that may read the metrics; absent: programs on this machine. */
  readonly metricsReaders?: MetricsReaders;
  /** Aborts when the process begins to stop: `/ready` then fails and load balancers pick other processes. */
  readonly whenDraining?: AbortSignal;
}

/** The route of a request. */
export interface Route {
  /** Its label in metrics and logs. */
  readonly name: string;
  /** As declared, with `:name` for parameters; absent: none matched. */
  readonly path?: string;
  /** The first parts of the names that its body and query can have. */
  readonly members?: ReadonlySet<string>;
  /** Whether it is left out of traces, because monitoring polls it constantly. */
  readonly isProbe?: boolean;
}

/** The members of a request that counting it reads and writes. */
type Counting = Pick<Exchange, "isCounted" | "rate">;

/** Does one request's work. An exception becomes the error answer. */
export type Work = (exchange: Exchange) => Response | Promise<Response>;

/**
 * The steps common to every route: request id, authentication, the rate window, error answers, metrics.
 *
 * Invariants:
 * F1. Every request is answered once. Errors are answered in JSON, or with a page to people who follow a link in a message,
 *     and reveal no internals.
 * F2. Every authenticated `/v1` request is counted exactly once: by `queue.accept` if it queues a job and its body is small,
 *     otherwise by `queue.admit`, which may be before there is a request (`Exchange.isCounted`). Requests refused for a limit that
 *     this process knows of (`KnownLimits`) are not counted.
 * F3. A request over the limit is answered with 429, whatever else is wrong with it.
 * F4. The body of a request refused for a limit is not read, unless the body is small and the limit was not known.
 */
export class FrontDoor {
  /** Addresses that requests come from; the listener fills this in. */
  readonly callers = new CallerAddresses();
  /** Headers that every HTML page and its assets carry in addition to their own. */
  readonly ofPages: AnswerHeaders;
  /** Kinds of message by the channel that a fallback may use. */
  readonly messageKinds: ReadonlyMap<string, MessageKind>;
  readonly outages: OutageLog;
  private readonly operators: OperatorGate;
  private readonly bodies: RequestBodies;
  private readonly answers: LargeAnswers;
  private readonly known: KnownLimits;
  private readonly changes: ChangePace;

  constructor(
    readonly ports: DoorPorts,
    messageKinds: readonly MessageKind[] = [],
  ) {
    this.messageKinds = new Map(messageKinds.map((kind) => [kind.channel, kind]));
    this.ofPages = transportSecurity(ports.publicUrl);
    this.outages = new OutageLog(ports.telemetry, ports.clock);
    this.operators = new OperatorGate(ports);
    this.bodies = new RequestBodies(ports.clock, ports.processes);
    this.answers = new LargeAnswers(ports.processes);
    this.known = new KnownLimits(ports.clock);
    this.changes = new ChangePace(ports.clock);
  }

  async serve(to: Route, request: Request, work: Work): Promise<Response> {
    const { clock, jobIds, telemetry, tracer } = this.ports;
    const { name: route } = to;
    const startedMs = clock.monotonicMs();
    const exchange = new Exchange(request, jobIds);
    if (tracer !== undefined && to.isProbe !== true) {
      exchange.span = tracer.request(spanName(to, request), request.headers.get("traceparent"));
    }
    let response: Response;
    try {
      response = this.inRoom(exchange, await work(exchange));
    } catch (error) {
      response = exchange.error(this.toApiError(route, exchange, error), to.members);
    }
    exchange.bodyHold?.release();
    if (this.ports.requestLog?.logsRequests) {
      const { method } = request;
      const { requestId: request_id } = exchange;
      telemetry.log("debug", "a request was answered", { route, method, status: response.status, request_id });
    }
    this.noteUsage(exchange, response);
    if (exchange.span !== null) endSpan(exchange, to, response);
    telemetry.count("http_requests", { route, method: request.method, status: String(response.status) });
    telemetry.time("http_request_seconds", (clock.monotonicMs() - startedMs) / 1000, { route });
    return response;
  }

  private inRoom({ largeAnswer, request }: Exchange, response: Response): Response {
    return largeAnswer === null ? response : this.answers.send(request, largeAnswer, response);
  }

  private noteUsage({ caller, jobId, jobsQueued }: Exchange, { status, headers }: Response): void {
    if (typeof caller === "string") return;
    // A repeat's job was counted with the first answer.
    const ofAnswer = jobId !== null && status === 202 && !headers.has("idempotency-replayed") ? 1 : 0;
    this.ports.usage?.note(caller.tenantId, jobsQueued + ofAnswer);
  }

  /**
   * Returns the tenant that the API key belongs to. Throws 401; and, once the request is counted, 403 if the key lacks the
   * scope that the call needs.
   */
  async authenticate(exchange: Exchange, scope: Scope): Promise<Tenant> {
    const found = this.findHolder(exchange);
    const holder = found instanceof Promise ? await found : found;
    if (holder === null)
      throw new ApiError("invalid_api_key", "the API key is missing or unknown: send it as X-API-Key");
    const { tenant, key } = holder;
    exchange.caller = tenant;
    exchange.apiKey = key;
    if (!key.scopes.has(scope)) {
      await this.admit(exchange, tenant);
      throw new ApiError("scope_missing", `this API key lacks the scope ${scope}, which the call needs`);
    }
    return tenant;
  }

  /** Returns the parsed body. Throws an `ApiError` as `RequestBodies.json` does. */
  json(exchange: Exchange, bounds?: BodyBounds): Promise<JsonBody> {
    return this.bodies.json(exchange, bounds);
  }

  /** As `json`; null if there is no body, or an empty one. */
  jsonIfAny(exchange: Exchange): Promise<JsonBody | null> {
    return this.bodies.jsonIfAny(exchange);
  }

  /** Returns the body, expanded if it is compressed. Throws an `ApiError` as `RequestBodies.decoded` does. */
  decoded(exchange: Exchange): Promise<Uint8Array> {
    return this.bodies.decoded(exchange);
  }

  /** Returns the raw body. Throws an `ApiError` as `RequestBodies.bytes` does. */
  bytes(exchange: Exchange, bytesMax?: number): Promise<Uint8Array> {
    return this.bodies.bytes(exchange, bytesMax);
  }

  /**
   * Returns the tenant that the API key belongs to, and the key's scopes; or null. The key is in `X-API-Key`, or a Bearer
   * token.
   */
  findHolder({ request: { headers } }: Exchange): KeyHolder | null | Promise<KeyHolder | null> {
    const apiKey = headers.get("x-api-key") ?? readBearerToken(headers.get("authorization"));
    if (apiKey === null || apiKey === "" || apiKey.length > API_KEY_CHARS_MAX) return null;
    return this.ports.directory.byApiKey(apiKey);
  }

  /** Runs work that costs as much as a body of the given size. Throws an `ApiError` 429 or 503 if too much work is waiting. */
  inTurnOrRefused<T>(caller: Caller, bytes: number, work: () => T | Promise<T>): T | Promise<T> {
    this.bodies.refuseCrowd(caller, bytes);
    return this.bodies.inTurn(caller, bytes, work);
  }

  /** Processes a body of the given size. Large bodies wait for their caller's turn, one at a time. */
  inTurn<T>(caller: Caller, bytes: number, work: () => T | Promise<T>): T | Promise<T> {
    return this.bodies.inTurn(caller, bytes, work);
  }

  /** Counts a request by a call of its own, once. Throws 429. */
  async admit(exchange: Counting, tenant: Tenant): Promise<void> {
    if (exchange.isCounted) return;
    this.refuseOverLimit(exchange, tenant);
    const { limited, rate } = await this.ports.queue.admit(tenant, tenant.plan.requestsPerMinute);
    exchange.rate = rate;
    if (limited) throw this.overLimit(exchange, tenant);
    exchange.isCounted = true;
  }

  /** Counts a change of the tenant's stored data. Throws 429 after too many, whatever the tenant's plan allows. */
  admitChange({ tenantId }: Tenant): void {
    const waitSeconds = this.changes.waitSeconds(tenantId);
    if (waitSeconds > 0) throw new ApiError("rate_limited", TOO_MANY_CHANGES, {}, waitSeconds);
  }

  /** Throws 429 if this process already knows that the tenant is over its limit. */
  refuseOverLimit(exchange: Counting, tenant: Tenant): void {
    const rate = exchange.isCounted ? null : this.known.usedUp(tenant);
    if (rate === null) return;
    exchange.rate = rate;
    throw OVER_LIMIT;
  }

  /**
   * Throws 429 if this process already knows that the tenant's share of the queue is used up. For requests that queue a job.
   */
  refuseFullQueue(exchange: Exchange, tenant: Tenant): void {
    const queue = this.known.fullQueue(tenant);
    if (queue === null) return;
    exchange.rate ??= queue.rate;
    throw queueFull(queue.what);
  }

  /** Builds the 429 for a request over the limit, and remembers the limit. */
  overLimit({ rate }: Counting, tenant: Tenant): ApiError {
    if (rate !== null) this.known.noteUsedUp(tenant, rate);
    return OVER_LIMIT;
  }

  /** Builds the 429 for a request that found the tenant's share of the queue used up, and remembers it. */
  queueFull({ rate }: Exchange, tenant: Tenant, what: QueueShare): ApiError {
    // Requests without a key may still fit.
    if (what !== "keys") this.known.noteFull(tenant, { what, rate });
    return queueFull(what);
  }

  /**
   * Returns the operator who calls. Throws 401 unless the request carries an operator's token or session, and 403 for a session
   * that is used from elsewhere than our pages.
   */
  requireOperator(exchange: Exchange): Operator {
    exchange.challenge = OPERATOR_CHALLENGE;
    const { request } = exchange;
    const operator = this.operators.require(request, () => this.callers.of(request));
    exchange.caller = "operator";
    exchange.operator = operator;
    return operator;
  }

  /** Begins a session for the token's operator. Throws 401. */
  signIn(exchange: Exchange, token: string): { readonly operator: Operator; readonly session: string } {
    exchange.challenge = OPERATOR_CHALLENGE;
    return this.operators.signIn(token, () => this.callers.of(exchange.request));
  }

  private toApiError(route: string, exchange: Exchange, error: unknown): ApiError {
    if (error instanceof ApiError) return error;
    const { requestId: request_id, span } = exchange;
    const fields = { route, request_id, ...traceInLog(span?.traceparent) };
    if (isOutage(error)) {
      this.outages.note("a request failed", { ...fields, error: String(error) });
      return new ApiError("service_unreachable", "a part of the service cannot be reached at the moment: try again");
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.ports.telemetry.log("error", "a request failed", { ...fields, error: text });
    return INTERNAL;
  }
}

/** Spans are named by the declared path: addresses contain secrets and are unbounded in number. */
function spanName({ path }: Route, { method }: Request): string {
  const known = METHODS.has(method) ? method : "HTTP";
  return path === undefined ? known : `${known} ${path}`;
}

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Uses the attribute names of OpenTelemetry's conventions for HTTP servers. */
function endSpan({ span, caller, request, requestId }: Exchange, { path }: Route, { status }: Response): void {
  const tenantId = typeof caller === "string" ? undefined : caller.tenantId;
  span?.end({
    owner: tenantId ?? `/${String(caller)}`,
    attributes: {
      "http.request.method": METHODS.has(request.method) ? request.method : "_OTHER",
      "http.response.status_code": status,
      "waybill.request_id": requestId,
      ...(path !== undefined && { "http.route": path }),
      ...(tenantId !== undefined && { "waybill.tenant_id": tenantId }),
      ...(status >= 500 && { "error.type": String(status) }),
    },
    ...(status >= 500 && { error: `answered ${status}` }),
  });
}

const OPERATOR_CHALLENGE = 'Bearer realm="waybill operators"';
const API_KEY_CHARS_MAX = 256;
const INTERNAL = new ApiError(500, "internal error");

const OVER_LIMIT = new ApiError("rate_limited", "too many requests: wait for the seconds that Retry-After names");
const TOO_MANY_CHANGES = `too many changes at once: ${CHANGES_PER_SECOND} a second are possible for long; wait for the seconds that Retry-After names`;
/** Deliveries free space continuously; idempotency keys are counted by the hour and freed once an hour. */
const RETRY_SECONDS: Readonly<Record<QueueShare, number>> = { jobs: 5, bytes: 5, keys: 60 };

function queueFull(what: QueueShare): ApiError {
  return new ApiError("queue_share_exceeded", queueFullText(what), {}, RETRY_SECONDS[what]);
}

export function queueFullText(what: QueueShare): string {
  if (what === "keys") {
    return "your Idempotency-Keys of the last 24 hours take up your share of the memory: try again later, or without a key";
  }
  const share = what === "jobs" ? "as many unfinished jobs" : "as many bytes of unfinished jobs";
  return `your share of the queue is used up: it holds ${share} as it may`;
}

/**
 * Headers for pages served over TLS: browsers then use TLS only, for a year (RFC 6797). Subdomains are not included, because
 * they are not ours to decide about.
 */
function transportSecurity(publicUrl: string | undefined): AnswerHeaders {
  const isSecure = publicUrl !== undefined && new URL(publicUrl).protocol === "https:";
  return isSecure ? { "strict-transport-security": "max-age=31536000" } : {};
}
