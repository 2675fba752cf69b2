import { ApiError } from "../domain/errors.ts";

/** The query's parameters. Throws an `ApiError` 400 that names an unknown or repeated parameter. */
export function readQuery<Name extends string>(
  request: Request,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  const query: Partial<Record<Name, string>> = {};
  const at = request.url.indexOf("?");
  if (at === -1) return query;
  for (const [given, value] of new URLSearchParams(request.url.slice(at + 1))) {
    const name = names.find((known) => known === given);
    if (name === undefined) {
      const known = names.length === 0 ? "there is none" : `known are ${names.join(", ")}`;
      throw new ApiError(400, `the query parameter "${given.slice(0, 100)}" is unknown: ${known}`);
    }
    if (query[name] !== undefined) throw new ApiError(400, `the query parameter ${name} is given more than once`);
    query[name] = value;
  }
  return query;
}
