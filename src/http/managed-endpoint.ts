import type { TSchema } from "@sinclair/typebox";
import type { ApiKey, Scope, Tenant } from "../domain/tenants/tenant.ts";
import type { AuditShown } from "./audit.ts";
import {
  type Answers,
  type BodyOf,
  type DocumentedBody,
  type Effect,
  type Endpoint,
  type Method,
  type OptionalBody,
  operatorEndpoint,
  type PathParameters,
  type QueryParameters,
  type Reply,
  tenantEndpoint,
  type ValuesOf,
} from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import {
  CONFLICT,
  KEY_CONFLICT,
  NOT_FOUND,
  OPERATOR_CONFLICT,
  OPERATOR_KEY_CONFLICT,
  OPERATOR_NOT_FOUND,
  OPERATOR_QUEUE_FULL,
} from "./failures.ts";
import type { FrontDoor } from "./front-door.ts";
import { type HeaderParameter, tenantIdParameter } from "./parameters.ts";

/** The calling tenant and its key. */
export interface Self {
  readonly tenant: Tenant;
  readonly key: ApiKey;
}

interface ManagedCall<P, Q> {
  readonly door: FrontDoor;
  readonly exchange: Exchange;
  /** The resource's tenant. If an operator calls, it may not exist. */
  readonly tenantId: string;
  /** Null: an operator calls. */
  readonly self: Self | null;
  readonly params: ValuesOf<P>;
  readonly query: ValuesOf<Q>;
}

/** A call that operators make for a tenant, and tenants for themselves. */
interface Managed<P, Q, A extends Answers, B> {
  readonly method: Method;
  /** The path after `/dash/api/tenants/{id}/` and `/v1/`. */
  readonly path: string;
  /** Labels the tenant's call in metrics and logs. */
  readonly name: string;
  /** The operator's operationId. The tenant's has `Own` after the verb: `listOwnKeys`. */
  readonly operation: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly headers?: readonly HeaderParameter[];
  readonly answers: A;
  /** Beside the 404 of an operator who names no tenant. 422, 429: it queues a job; tenants' calls all have the latter. */
  readonly fails?: readonly (404 | 409 | 422 | 429)[];
  readonly effect?: Effect;
  /** The scope that a tenant's key needs; by default as for every tenant call. */
  readonly scope?: Scope;
  readonly audit?: AuditShown;
}

/** Both endpoints of a call that operators make for a tenant, and tenants for themselves: one implementation for the two. */
export function managedEndpoints<
  const A extends Answers,
  const P extends PathParameters = Record<never, never>,
  const Q extends QueryParameters = Record<never, never>,
  B extends TSchema | OptionalBody | DocumentedBody | undefined = undefined,
>(
  declared: Managed<P, Q, A, B> & {
    handle(call: ManagedCall<P, Q> & { readonly body: BodyOf<B> }): Promise<Reply<A> | Response>;
  },
): readonly [ofOperators: Endpoint, ofTenants: Endpoint] {
  const { path, name, operation, scope, params, query, body, fails = [], handle, ...same } = declared;
  type Full = ManagedCall<P, Q> & { readonly body: BodyOf<B> };
  return [
    operatorEndpoint({
      ...same,
      path: `/dash/api/tenants/:id/${path}`,
      name: "operator",
      operation,
      tag: "Tenants",
      params: { id: tenantIdParameter, ...params },
      ...(query !== undefined && { query }),
      ...(body !== undefined && { body }),
      fails: {
        404: OPERATOR_NOT_FOUND,
        ...(fails.includes(409) && { 409: OPERATOR_CONFLICT }),
        ...(fails.includes(422) && { 422: OPERATOR_KEY_CONFLICT }),
        ...(fails.includes(429) && { 429: OPERATOR_QUEUE_FULL }),
      },
      handle: ({ params: { id, ...named }, ...call }) =>
        // The declared parameters without the tenant's id, and the declared body.
        handle({ ...call, params: named, tenantId: id, self: null } as unknown as Full),
    }),
    tenantEndpoint({
      ...same,
      path: `/v1/${path}`,
      name,
      operation: operation.replace(/^[a-z]+/, "$&Own"),
      tag: "Management",
      ...(scope !== undefined && { scope }),
      ...(params !== undefined && { params }),
      ...(query !== undefined && { query }),
      ...(body !== undefined && { body }),
      fails: {
        ...(fails.includes(404) && { 404: NOT_FOUND }),
        ...(fails.includes(409) && { 409: CONFLICT }),
        ...(fails.includes(422) && { 422: KEY_CONFLICT }),
      },
      handle: ({ tenant, key, ...call }) => handle({ ...call, tenantId: tenant.tenantId, self: { tenant, key } }),
    }),
  ];
}
