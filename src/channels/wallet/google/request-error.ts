import { ApiError } from "../../../domain/errors.ts";
import type { Refused } from "./google-api.ts";

/** What the API caller is told when a call fails through no fault of the caller. */
export function requestError(answer: Refused): ApiError {
  if (answer.kind === "refused") {
    if (answer.cause === "credentials") {
      return new ApiError(
        500,
        "Google did not accept the service account of the channel wallet: check its credentials",
      );
    }
    if (answer.cause === "forbidden") {
      return new ApiError(500, "the service account of the channel wallet may not act for its Google issuer");
    }
  }
  return new ApiError(500, "Google's wallet does not answer as it should at the moment: try again");
}
