import { ApiError } from "../../core/errors.ts";

/** What is wrong with a field of a request: `pass_data.style must be one of …`. `what` completes the sentence. */
export function fault(field: string, what: string): ApiError {
  return new ApiError(400, `${field} ${what}`);
}
