import { createHmac } from "node:crypto";
import { type Arguments, CALLS, type Fresh } from "./endpoint-calls.ts";
import type { Identifiers } from "./identifiers.ts";
import { json, probe, type Request } from "./probe.ts";

/** A caller's credentials according to the document; `none`: no credentials. */
export type Security = "apiKey" | "operator" | "applePass" | "webhookSignature" | "none";

/** One operation of the product's own OpenAPI document. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With `{name}` for a parameter. */
  readonly path: string;
  readonly security: Security;
  /** Statuses below 400 that the document names. */
  readonly successes: readonly number[];
}

interface DocumentedOperation {
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly responses: Readonly<Record<string, unknown>>;
}

/** The operations in the order of their calls in `CALLS`; operations without one come first. */
export async function fetchOperations(url: string): Promise<readonly Operation[]> {
  const document = json(await probe(url, { method: "GET", path: "/openapi.json" }));
  const paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>> = document.paths;
  const order = Object.keys(CALLS);
  return Object.entries(paths)
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId, security, responses }]) => ({
        id: operationId,
        method: method.toUpperCase(),
        path,
        security: toSecurity(security),
        successes: Object.keys(responses)
          .map(Number)
          .filter((status) => status < 400),
      })),
    )
    .toSorted((one, other) => order.indexOf(one.id) - order.indexOf(other.id));
}

const KNOWN: readonly Security[] = ["apiKey", "operator", "applePass", "webhookSignature"];

/**
 * Throws for a scheme that no attack covers. If one of several alternatives requires no credentials, the operation
 * requires none.
 */
function toSecurity(requirements: DocumentedOperation["security"]): Security {
  const names = requirements.flatMap((requirement) => Object.keys(requirement));
  if (requirements.length === 0 || requirements.some((each) => Object.keys(each).length === 0)) return "none";
  const known = KNOWN.find((security) => names.includes(security));
  if (known === undefined) throw new Error(`no attack knows the security scheme ${names.join(", ")}`);
  return known;
}

export function buildArguments(operation: Operation, ids: Identifiers, fresh: Fresh): Arguments {
  const call = CALLS[operation.id];
  if (call === undefined) throw new Error(`nothing says how to call ${operation.id}: add it to endpoint-calls.ts`);
  return call(ids, fresh);
}

/** The request without credentials. */
export function buildRequest(
  { method, path }: Operation,
  { headers, query, contentType, ...rest }: Arguments,
): Request {
  const filled = path.replace(/\{(\w+)\}/g, (_match, name: string) => encodeURIComponent(rest.path?.[name] ?? ""));
  const asked = query === undefined ? "" : `?${new URLSearchParams(query).toString()}`;
  const at = { method, path: `${filled}${asked}` };
  if (rest.body === undefined) return headers === undefined ? at : { ...at, headers };
  const type = contentType ?? "application/json";
  const body = typeof rest.body === "string" ? rest.body : JSON.stringify(rest.body);
  return { ...at, headers: { "content-type": type, ...headers }, body };
}

export function withHeaders(request: Request, headers: Readonly<Record<string, string>>): Request {
  return { ...request, headers: { ...request.headers, ...headers } };
}

/** The credentials of callers. */
export interface Secrets {
  readonly apiKey: string;
  readonly operatorToken: string;
  readonly passToken: string;
  readonly webhookSecret: string;
}

/** The request with the credentials that the operation requires. */
export function withCredentials({ security }: Operation, request: Request, secrets: Secrets): Request {
  const credentials: Readonly<Record<Security, () => Readonly<Record<string, string>>>> = {
    apiKey: () => ({ "x-api-key": secrets.apiKey }),
    operator: () => ({ authorization: `Bearer ${secrets.operatorToken}` }),
    applePass: () => ({ authorization: `ApplePass ${secrets.passToken}` }),
    webhookSignature: () => ({ "x-hub-signature-256": signRequest(request, secrets.webhookSecret) }),
    none: () => ({}),
  };
  return withHeaders(request, credentials[security]());
}

/** The signature of a webhook call. */
export function signRequest({ body = "" }: Request, secret: string): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}
