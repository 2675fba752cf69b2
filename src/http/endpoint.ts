import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { ApiKey, Scope, Tenant } from "../domain/tenants/tenant.ts";
import type { Json } from "../domain/texts/json.ts";
import { ApiError } from "./api-error.ts";
import { type AuditedCall, type AuditShown, auditedDetail, auditedPath, readNewTenant } from "./audit.ts";
import { auditedCall } from "./audited-call.ts";
import type { Deprecation } from "./deprecation.ts";
import type { AnswerHeaders, Exchange } from "./exchange.ts";
import type { Failure } from "./failures.ts";
import type { FrontDoor } from "./front-door.ts";
import { OperatorBody } from "./operator-body.ts";
import { type HeaderParameter, type PathParameter, type QueryParameter, readQuery } from "./parameters.ts";
import type { MessageKind } from "./sending/acceptance.ts";

/*
 * The declaration of an endpoint. One object yields the route, the request checks, the handler's types, the operation in the
 * OpenAPI document, and the test that holds the answers to their declared schemas.
 */

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export type Effect = "read" | "change" | "report";

/** A section heading in the API document. */
export type Tag =
  | "Send"
  | "Passes"
  | "Jobs"
  | "Events"
  | "Webhooks"
  | "Domains"
  | "Management"
  | "Tenants"
  | "Analysis"
  | "Plans"
  | "Operators"
  | "Mail reports"
  | "Chat"
  | "Sandbox"
  | "Pass devices"
  | "Public links"
  | "Service";

/** The permitted caller: a tenant with its key, an operator with the token, or anyone who passes the endpoint's own checks. */
export type CallerKind = "tenant" | "operator" | "anyone";

/** A named example, with a sentence on what it shows. */
export interface Example {
  readonly summary?: string;
  readonly value: Json;
}

/** A successful answer. */
export interface Answer {
  readonly description: string;
  /** Schema of its JSON body. Null: the body is not JSON (see `mediaType`), or there is none. */
  readonly schema: TSchema | null;
  /** A list if the request selects one of several. */
  readonly mediaType?: string | readonly string[];
  /** Media types of other forms of the same content, which the request can select instead of JSON. */
  readonly otherTypes?: readonly string[];
  /** Whether a non-JSON body is binary rather than text. */
  readonly isBinary?: boolean;
  readonly examples?: Readonly<Record<string, Example>> | readonly [Json];
  /** Headers beyond those that every answer carries, with one sentence per name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers by status. */
export type Answers = Readonly<Record<number, Answer>>;

/** Deeply readonly: an example never changes. */
type Shown<T> = T extends readonly (infer E)[]
  ? readonly Shown<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Shown<T[K]> }
    : T;

/** A handler's return value: one of the answers that its endpoint declares. */
export type Reply<A extends Answers> = {
  readonly [S in keyof A & number]: {
    readonly status: S;
    readonly body: A[S]["schema"] extends TSchema ? Shown<Static<A[S]["schema"]>> : null;
    readonly headers?: AnswerHeaders;
  };
}[keyof A & number];

/** Builds one of the declared answers. `body` is null for an answer without a body. */
export function reply<const S extends number, const T>(status: S, body: T, headers?: AnswerHeaders) {
  return headers === undefined ? { status, body } : { status, body, headers };
}

export type PathParameters = Readonly<Record<string, PathParameter<unknown>>>;
export type QueryParameters = Readonly<Record<string, QueryParameter<unknown>>>;

/** The values of the declared parameters. */
export type ValuesOf<P> = { readonly [N in keyof P]: P[N] extends { read(text: never): infer T } ? T : never };

/** The document's description of a body that the handler validates itself. */
export interface DocumentedBody {
  /** Null if the body is not JSON. */
  readonly schema: TSchema | null;
  /** JSON by default. A list allows any of its media types. */
  readonly mediaType?: string | readonly string[];
  /** Whether the body may be left out. */
  readonly isOptional?: boolean;
  readonly description?: string;
  readonly examples?: Readonly<Record<string, Example>> | readonly [Json];
}

/** A body that is validated by its schema, and may be left out. */
export interface OptionalBody<S extends TSchema = TSchema> {
  readonly optional: S;
}

/** Everything the document needs to know about an endpoint. */
export interface Declaration {
  readonly method: Method;
  /** Path parameters are written `:name`. */
  readonly path: string;
  /** Labels the endpoint in metrics and logs. */
  readonly name: string;
  /** The document's `operationId`. */
  readonly operation: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly params?: PathParameters | undefined;
  readonly query?: QueryParameters | undefined;
  readonly headers?: readonly HeaderParameter[] | undefined;
  readonly answers: Answers;
  /** Failures by status, beyond those that follow from caller, body and parameters. */
  readonly fails?: Readonly<Record<number, Failure>> | undefined;
  /** How long the connection may stay silent while the request is served, if longer than usual. */
  readonly idleSeconds?: number | undefined;
  /**
   * The effect of an operator's call, or of a tenant's call on its stored data: `read`, or `change`, which requires the role
   * `write` of an operator and is audited. `report`: a machine forwards what happened elsewhere; it requires the role, and is
   * too frequent for the log. By default, `GET` reads and every other method changes.
   */
  readonly effect?: Effect | undefined;
  /** Which members of its bodies the audit log shows. */
  readonly audit?: AuditShown | undefined;
  /** Absent: it is not deprecated. A deprecated member is marked in its schema (`deprecated: true`). */
  readonly deprecated?: Deprecation | undefined;
}

/** An endpoint as the server serves it. */
export interface Endpoint extends Declaration {
  readonly caller: CallerKind;
  /**
   * Names of `securitySchemes`, any one of which suffices, for endpoints whose caller kind does not imply one. Empty: none. A
   * null entry allows anonymous calls.
   */
  readonly security?: readonly (string | null)[] | undefined;
  readonly channel?: ChannelName | undefined;
  /** The scope that the tenant's key needs. */
  readonly scope?: Scope | undefined;
  readonly documentedBody?: DocumentedBody | undefined;
  /** For a call that queues a message: the check of a fallback on its channel. */
  readonly messageKind?: MessageKind | undefined;
  /** Serves a call of an operator once its token, its role and the audit log have let it pass. */
  serve(door: FrontDoor, exchange: Exchange, params: RawParameters): Response | Promise<Response>;
}

/** Parameters as the router passes them: null where the percent-encoding is invalid. */
export type RawParameters = Readonly<Record<string, string | null>>;

interface Call<P, Q> {
  readonly door: FrontDoor;
  readonly exchange: Exchange;
  readonly params: ValuesOf<P>;
  readonly query: ValuesOf<Q>;
}

interface Handled<A extends Answers> {
  readonly answers: A;
}

/**
 * The type of a body: validated by its schema before the handler runs, or documented here and checked by the handler. Null: no
 * body, or one that was left out.
 */
export type BodyOf<B> =
  B extends OptionalBody<infer S extends TSchema>
    ? Static<S> | null
    : B extends TSchema
      ? Static<B>
      : B extends DocumentedBody
        ? unknown
        : null;

type Declared<P, Q, A extends Answers> = Omit<Declaration, "params" | "query" | "answers"> &
  Handled<A> & { readonly params?: P; readonly query?: Q };

/** A call of the operator API. Order of checks: token, role, path, query, body. */
export function operatorEndpoint<
  const P extends PathParameters,
  const Q extends QueryParameters,
  const A extends Answers,
  B extends TSchema | OptionalBody | DocumentedBody | undefined = undefined,
>(
  declared: Declared<P, Q, A> & {
    readonly body?: B;
    handle(call: Call<P, Q> & { readonly body: BodyOf<B> }): Promise<Reply<A> | Response>;
  },
): Endpoint {
  const body = bodyReader(declared.body);
  return finished(declared, {
    caller: "operator",
    documentedBody: body.documented,
    async serve(door, exchange, params) {
      const named = readParams(declared, params);
      const query = parseQuery(declared, exchange);
      const read = await body.read(door, exchange);
      const shown = read instanceof Uint8Array ? null : read;
      exchange.auditDetail = auditedDetail(declared.audit, shown, null);
      // The reader is built from the same schema as the type.
      const given = read as BodyOf<B>;
      const call = { door, exchange, params: named, query, body: given } as Call<P, Q> & { readonly body: BodyOf<B> };
      const answer = await declared.handle(call);
      if (!(answer instanceof Response)) {
        exchange.auditDetail = auditedDetail(declared.audit, shown, answer.body);
        exchange.newTenantId = readNewTenant(declared.audit, answer.body);
      }
      return toResponse(exchange, answer);
    },
  });
}

/**
 * A tenant's call. Order of checks: key, rate window, the key's scope, channel, query, the tenant's share of the queue (if the
 * call queues a job), body, path. The request is counted before its work begins: a rate-limited tenant must not cause lookups
 * in other parts of the service. A change of the tenant's stored data (scope `manage`) is written to the audit log.
 */
export function tenantEndpoint<
  const P extends PathParameters,
  const Q extends QueryParameters,
  const A extends Answers,
  B extends TSchema | OptionalBody | DocumentedBody | undefined = undefined,
>(
  declared: Declared<P, Q, A> & {
    /** The channel that the tenant must have. */
    readonly channel?: ChannelName;
    /** The scope that the key needs. By default, a call that reads needs `read`, and every other one `manage`. */
    readonly scope?: Scope;
    readonly body?: B;
    /** Whether the call queues a job. If so, it is refused once the tenant's share of the queue is used up. */
    readonly queues?: boolean;
    /** Whether it counts as a change of the tenant's stored data (`FrontDoor.admitChange`); by default, if it is audited. */
    readonly isPaced?: boolean;
    handle(
      call: Call<P, Q> & { readonly tenant: Tenant; readonly key: ApiKey; readonly body: BodyOf<B> },
    ): Promise<Reply<A> | Response>;
  },
): Endpoint {
  const body = bodyReader(declared.body);
  const { channel, queues = false, audit } = declared;
  const effect = getEffect(declared);
  const scope = declared.scope ?? (effect === "read" ? "read" : "manage");
  const isAudited = scope === "manage" && effect === "change";
  const { isPaced = isAudited } = declared;
  return finished(declared, {
    caller: "tenant",
    channel,
    scope,
    documentedBody: body.documented,
    async serve(door, exchange, params) {
      const tenant = await door.authenticate(exchange, scope);
      await door.admit(exchange, tenant);
      const key = requireKey(exchange);
      if (channel !== undefined) (queues ? requireSending : requireChannel)(tenant, channel);
      const query = parseQuery(declared, exchange);
      if (queues) door.refuseFullQueue(exchange, tenant);
      const read = await body.read(door, exchange);
      const named = readParams(declared, params);
      // The reader is built from the same schema as the type.
      const given = read as BodyOf<B>;
      const call = { door, exchange, tenant, key, params: named, query, body: given } as Call<P, Q> & {
        readonly tenant: Tenant;
        readonly key: ApiKey;
        readonly body: BodyOf<B>;
      };
      if (isPaced) door.admitChange(tenant);
      if (!isAudited) return toResponse(exchange, await declared.handle(call));
      const shown = read instanceof Uint8Array ? null : read;
      exchange.auditDetail = auditedDetail(audit, shown, null);
      const { target } = auditedPath(declared, params);
      const by = { id: key.keyId, name: key.keyId };
      const { tenantId } = tenant;
      const entry: Audited = { operator: by, isTenants: true, action: declared.operation, tenantId, target };
      return auditedCall(door.ports.audit, exchange, entry, async () => {
        const answer = await declared.handle(call);
        if (!(answer instanceof Response)) exchange.auditDetail = auditedDetail(audit, shown, answer.body);
        return toResponse(exchange, answer);
      });
    },
  });
}

/** Declares a call whose handler performs all checks except an operator's, and may return a finished response. */
export function endpoint<const A extends Answers>(
  declared: Omit<Declaration, "answers"> &
    Handled<A> & {
      readonly caller?: CallerKind;
      readonly security?: readonly (string | null)[];
      readonly channel?: ChannelName;
      /** The scope that a tenant's key needs; the handler passes it to `authenticate`. */
      readonly scope?: Scope;
      readonly body?: DocumentedBody;
      handle(
        door: FrontDoor,
        exchange: Exchange,
        params: RawParameters,
      ): Reply<A> | Response | Promise<Reply<A> | Response>;
    },
): Endpoint {
  const { caller = "anyone", security, channel, scope, body } = declared;
  return finished(declared, {
    caller,
    security,
    channel,
    scope,
    documentedBody: body,
    serve(door, exchange, params) {
      const answered = declared.handle(door, exchange, params);
      if (answered instanceof Response) return answered;
      if (answered instanceof Promise) return answered.then((reply) => toResponse(exchange, reply));
      return toResponse(exchange, answered);
    },
  });
}

/** Returns the call's effect: declared, or derived from its method. */
export function getEffect({ method, effect }: Pick<Declaration, "method" | "effect">): Effect {
  return effect ?? (method === "GET" ? "read" : "change");
}

function requireKey({ apiKey }: Exchange): ApiKey {
  if (apiKey === null) throw new Error("a tenant's call has no key");
  return apiKey;
}

type Audited = Omit<AuditedCall, "requestId">;
type Rest = Omit<Endpoint, keyof Declaration>;

/** Throws a `TypeError` if path and parameters disagree, which is a mistake in the declaration. */
export function finished(declared: Declaration, rest: Rest): Endpoint {
  const named = Array.from(declared.path.matchAll(/:(\w+)/g), ([, name = ""]) => name);
  const known = Object.keys(declared.params ?? {});
  if (named.toSorted().join() !== known.toSorted().join()) {
    throw new TypeError(`${declared.path} declares the parameters ${known.join(", ") || "none"}`);
  }
  return { ...declared, ...rest };
}

/** An answer of any endpoint. */
export interface AnyReply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: AnswerHeaders;
}

/** Converts the answer to an HTTP response. */
export function toResponse(exchange: Exchange, reply: AnyReply | Response): Response {
  if (reply instanceof Response) return reply;
  const { status, body, headers } = reply;
  return body === null ? exchange.body(status, null, headers ?? {}) : exchange.json(status, body, headers);
}

function readParams({ params }: { readonly params?: PathParameters }, raw: RawParameters): Record<string, unknown> {
  if (params === undefined) return {};
  return Object.fromEntries(Object.entries(params).map(([name, { read }]) => [name, read(raw[name] ?? null)]));
}

/** Throws an `ApiError` 400, also for a parameter that the endpoint does not declare. */
function parseQuery({ query }: { readonly query?: QueryParameters }, { request }: Exchange): Record<string, unknown> {
  const given: Readonly<Record<string, string | undefined>> = readQuery(request, Object.keys(query ?? {}));
  if (query === undefined) return {};
  return Object.fromEntries(Object.entries(query).map(([name, { read }]) => [name, read(given[name])]));
}

interface BodyReader {
  readonly documented: DocumentedBody | undefined;
  read(door: FrontDoor, exchange: Exchange): Promise<unknown>;
}

/** The body of a call that has none. */
const NO_MEMBERS = new OperatorBody(Type.Object({}, { additionalProperties: false }));

function bodyReader(body: TSchema | OptionalBody | DocumentedBody | undefined): BodyReader {
  if (body === undefined) {
    return {
      documented: undefined,
      // A body is never silently ignored, except on GET, where content has no meaning (RFC 9110, 9.3.1).
      read: async (door, exchange) => {
        if (exchange.request.method !== "GET") await NO_MEMBERS.readIfAny(door, exchange);
        return null;
      },
    };
  }
  if (isOptional(body)) {
    const shape = new OperatorBody(body.optional);
    return {
      documented: { schema: shape.documented, isOptional: true },
      read: (door, exchange) => shape.readIfAny(door, exchange),
    };
  }
  if (!isDocumented(body)) {
    const shape = new OperatorBody(body);
    return { documented: { schema: shape.documented }, read: (door, exchange) => shape.read(door, exchange) };
  }
  if (body.schema === null) return { documented: body, read: (door, exchange) => door.decoded(exchange) };
  return { documented: body, read: async (door, exchange) => (await door.json(exchange)).value };
}

function isOptional(body: TSchema | OptionalBody | DocumentedBody): body is OptionalBody {
  return "optional" in body;
}

function isDocumented(body: TSchema | DocumentedBody): body is DocumentedBody {
  return "schema" in body;
}

/** Throws 403 unless the tenant has the channel. */
export function requireChannel(tenant: Tenant, channel: ChannelName): void {
  if (tenant.channels.has(channel)) return;
  throw new ApiError("channel_not_enabled", `the channel ${channel} is not enabled for this tenant`);
}

/** Throws 403 unless the tenant has the channel, and neither an operator nor its reputation holds its sends. */
export function requireSending(tenant: Tenant, channel: ChannelName): void {
  requireChannel(tenant, channel);
  if (tenant.steering?.held.has(channel) === true) {
    throw new ApiError("sends_on_hold", `sends of this tenant on ${channel} are on hold`);
  }
  if (channel === "email" && tenant.reputation === "held") throw new ApiError("sends_on_hold", HELD_FOR_REPUTATION);
}

const HELD_FOR_REPUTATION =
  "sends of this tenant on email are on hold for its reputation: too many of its e-mails bounced or were reported as spam; " +
  "an operator ends the hold (docs/reputation.md)";
