import type { Done, Full, Invalid, InvalidCursor, Missing, Named } from "../domain/store-result.ts";
import { ApiError } from "./api-error.ts";

/** What a store did. Throws the `ApiError` for a result that is the same answer at every endpoint. */
export function resultOf<T>(result: Done<T> | Missing | Invalid | Full | InvalidCursor): T {
  switch (result.kind) {
    case "done":
      return result.value;
    case "missing":
      throw noSuch(result.what);
    case "invalid":
      throw new ApiError(400, result.why);
    case "full":
      throw new ApiError(409, result.why);
    case "invalid_cursor":
      throw new ApiError(400, 'The value of "cursor" is not one that was given out.');
  }
}

/** The 404 for something that does not exist, or is another tenant's. */
export function noSuch(what: Named | "job" | "link" | "file"): ApiError {
  return new ApiError(404, what === "credentials" ? "there are no such credentials" : `there is no such ${what}`);
}
