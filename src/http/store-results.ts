import type { Done, Full, Invalid, InvalidCursor, Missing, Named } from "../domain/store-result.ts";
import { ApiError, about } from "./api-error.ts";

/** Returns a store's result. Throws the `ApiError` for a result that every endpoint answers alike. */
export function requireResult<T>(result: Done<T> | Missing | Invalid | Full | InvalidCursor): T {
  switch (result.kind) {
    case "done":
      return result.value;
    case "missing":
      throw noSuch(result.what);
    case "invalid":
      throw new ApiError(400, result.why);
    case "full":
      throw new ApiError("limit_reached", result.why);
    case "invalid_cursor":
      throw invalidCursor();
  }
}

/** Builds the 404 for a resource that does not exist, or belongs to another tenant. */
export function noSuch(what: Named | "job" | "link" | "file"): ApiError {
  const text = what === "credentials" ? "there are no such credentials" : `there is no such ${what}`;
  return new ApiError(`no_such_${what}`, text);
}

/** The 400 for a cursor of no page. */
export function invalidCursor(text = 'The value of "cursor" is not one that was given out.'): ApiError {
  return new ApiError(about("cursor", "invalid_cursor"), text);
}
