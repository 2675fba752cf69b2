import { type TSchema, Type } from "@sinclair/typebox";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import { ApiError, about } from "./api-error.ts";
import { enumSchema } from "./schemas.ts";
import { noSuch } from "./store-results.ts";

/** A path parameter. */
export interface PathParameter<T> {
  readonly description: string;
  readonly example: string;
  /** Whether it names a person; the audit log then shows the part after the `@` alone. */
  readonly isPersonal?: boolean;
  /** `text` is null if the percent-encoding is invalid. Throws an `ApiError`. */
  read(text: string | null): T;
}

/** A query parameter. */
export interface QueryParameter<T> {
  readonly description: string;
  readonly schema: TSchema;
  readonly example?: string;
  readonly isRequired?: boolean;
  /** `text` is undefined if the parameter is absent. Throws an `ApiError` 400. */
  read(text: string | undefined): T;
}

/** A header that a request may carry. */
export interface HeaderParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: TSchema;
  readonly example?: string;
}

/** A path parameter as it arrived; "" if the percent-encoding is invalid. The handler looks up the named resource. */
export function pathText(description: string, example: string): PathParameter<string> {
  return { description, example, read: (text) => text ?? "" };
}

/** A query parameter as it arrived; null if absent. */
export function queryText(description: string): QueryParameter<string | null> {
  return { description, schema: Type.String(), read: (text) => text ?? null };
}

/** One of a set of words, or `absent` if the parameter is missing. Throws an `ApiError` 400 that names the parameter. */
export function queryChoice<const T extends string, const F extends T | null>(
  name: string,
  known: readonly T[],
  { description, absent }: { readonly description: string; readonly absent: F },
): QueryParameter<T | F> {
  return {
    description,
    schema: { ...enumSchema(known), ...(absent === null ? null : { default: absent }) },
    read(text) {
      if (text === undefined) return absent;
      const match = known.find((value) => value === text);
      if (match === undefined) throw new ApiError(400, `${name} must be one of ${known.join(", ")}`);
      return match;
    },
  };
}

/** A tenant's id. Throws 404 for a text that cannot be one. */
export const tenantIdParameter: PathParameter<string> = {
  description: "A tenant's id.",
  example: "acme",
  read(text) {
    if (text === null || !TENANT_ID.test(text)) throw noSuch("tenant");
    return text;
  },
};

const PAGE_DEFAULT = 100;
const PAGE_MAX = 500;

/** The page size of a list; 100 if absent. */
export const limitParameter: QueryParameter<number> = {
  description: "Page size; above 500 counts as 500.",
  schema: Type.Integer({ minimum: 1, default: PAGE_DEFAULT }),
  read(text) {
    if (text === undefined) return PAGE_DEFAULT;
    if (!/^\d+$/.test(text) || Number(text) < 1) throw new ApiError(400, "limit must be an integer of at least 1");
    return Math.min(Number(text), PAGE_MAX);
  },
};

/** The parameters `?cursor&limit` of a paged list. */
export const paging = {
  cursor: queryText("The `next_cursor` of the previous page."),
  limit: limitParameter,
} satisfies Record<string, QueryParameter<unknown>>;

/**
 * The path of a request's URL. Its authority is the caller's `Host`, which may be malformed: `URL` refuses some of those, and
 * for others the server provides the path alone.
 */
export function readPath(url: string): string {
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return start === -1 ? "/" : url.slice(start, end === -1 ? undefined : end);
}

/** The query of a request's URL; compare `readPath`. */
export function readQueryString(url: string): URLSearchParams {
  const at = url.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : url.slice(at + 1));
}

/** The query's parameters. Throws an `ApiError` 400 that names an unknown or repeated parameter. */
export function readQuery<Name extends string>(
  request: Request,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  const query: Partial<Record<Name, string>> = {};
  for (const [given, value] of readQueryString(request.url)) {
    const name = names.find((known) => known === given);
    if (name === undefined) {
      const known = names.length === 0 ? "there is none" : `known are ${names.join(", ")}`;
      const param = given.slice(0, 100);
      throw new ApiError(about(param, "unknown_member"), `the query parameter "${param}" is unknown: ${known}`);
    }
    if (query[name] !== undefined)
      throw new ApiError(about(name), `the query parameter ${name} is given more than once`);
    query[name] = value;
  }
  return query;
}
