import { ApiError } from "../domain/errors.ts";
import { TENANT_ID } from "../domain/tenant.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor, Work } from "./front-door.ts";
import { readQuery } from "./request-query.ts";

/** Serves one call of the operator API: the token first, then the work. */
export function operatorRoute(door: FrontDoor, request: Request, work: Work): Promise<Response> {
  return door.serve("operator", request, (exchange) => {
    door.requireOperator(exchange);
    return work(exchange);
  });
}

/** A tenant id out of the path (null: no valid percent-encoding). Throws 404 for what cannot be one. */
export function tenantIdOf(text: string | null): string {
  if (text === null || !TENANT_ID.test(text)) throw new ApiError(404, "there is no such tenant");
  return text;
}

/** A call that has nothing to show. */
export function noContent(exchange: Exchange): Response {
  return exchange.body(204, null, {});
}

/** `?cursor&limit` of a paged list. */
export function readPaging(request: Request): { readonly cursor: string | null; readonly limit: number } {
  const query = readQuery(request, ["cursor", "limit"]);
  return { cursor: query.cursor ?? null, limit: parsePageLimit(query.limit) };
}

/** Throws an `ApiError` 400. Absent: 100; over 500 counts as 500. */
export function parsePageLimit(text: string | undefined): number {
  if (text === undefined) return PAGE_DEFAULT;
  if (!/^\d+$/.test(text) || Number(text) < 1) throw new ApiError(400, "limit must be an integer of at least 1");
  return Math.min(Number(text), PAGE_MAX);
}

const PAGE_DEFAULT = 100;
const PAGE_MAX = 500;
