import { ApiError } from "./api-error.ts";
import { auditedPath } from "./audit.ts";
import { auditedCall } from "./audited-call.ts";
import { type Endpoint, getEffect, type RawParameters } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";

/**
 * Serves every call of the operator API: checks token and role, and writes changes to the audit log, so no endpoint can forget
 * to. Throws an `ApiError` 401 or 403; rejects with an outage if the audit log cannot be written; the change is then not made.
 */
export async function serveOperator(
  door: FrontDoor,
  endpoint: Endpoint,
  { exchange, params }: { readonly exchange: Exchange; readonly params: RawParameters },
): Promise<Response> {
  const operator = door.requireOperator(exchange);
  const effect = getEffect(endpoint);
  if (effect !== "read" && operator.role !== "write") {
    throw new ApiError(
      "read_only_operator",
      "this operator may only read: the call needs an operator with the role write",
    );
  }
  if (effect !== "change") return endpoint.serve(door, exchange, params);
  const call = { operator, action: endpoint.operation, ...auditedPath(endpoint, params) };
  return auditedCall(door.ports.audit, exchange, call, () => endpoint.serve(door, exchange, params));
}
