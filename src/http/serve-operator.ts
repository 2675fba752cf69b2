import { ApiError } from "./api-error.ts";
import { auditedPath } from "./audit.ts";
import type { Effect, Endpoint, RawParameters } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";

/** What a call of the operator API does. */
export function effectOf({ method, effect }: Pick<Endpoint, "method" | "effect">): Effect {
  return effect ?? (method === "GET" ? "read" : "change");
}

/**
 * Serves every call of the operator API: checks token and role, and writes changes to the audit log, so no endpoint can forget
 * to. Throws an `ApiError` 401, 429 or 403; rejects with an outage if the audit log cannot be written, and nothing is changed.
 */
export async function serveOperator(
  door: FrontDoor,
  endpoint: Endpoint,
  { exchange, params }: { readonly exchange: Exchange; readonly params: RawParameters },
): Promise<Response> {
  const operator = door.requireOperator(exchange);
  const effect = effectOf(endpoint);
  if (effect !== "read" && operator.role !== "write") {
    throw new ApiError(403, "this operator may only read: the call needs an operator with the role write");
  }
  if (effect !== "change") return endpoint.serve(door, exchange, params);
  const { audit } = door.ports;
  const { requestId } = exchange;
  const path = auditedPath(endpoint, params);
  const row = await audit.begin({ operator, action: endpoint.operation, ...path, requestId });
  // An error without a status of its own becomes a 500.
  let status = 500;
  try {
    const response = await endpoint.serve(door, exchange, params);
    ({ status } = response);
    return response;
  } catch (error) {
    if (error instanceof ApiError) ({ status } = error);
    throw error;
  } finally {
    await audit.end(row, { status, detail: exchange.auditDetail, newTenantId: exchange.newTenantId });
  }
}
