import { ApiError } from "../../../domain/errors.ts";
import type { JsonObject } from "../../../domain/json.ts";
import { unknownMember } from "../../../http/sending/acceptance.ts";

/** An error about a field of a request: `pass_data.style must be one of …`. `what` completes the sentence. */
export function fault(field: string, what: string): ApiError {
  return new ApiError(400, `${field} ${what}`);
}

/** Throws an `ApiError` 400 if the body has a member unknown to the endpoint. */
export function requireKnownMembers(body: JsonObject, known: readonly string[]): void {
  const refusal = unknownMember(body, known);
  if (refusal !== null) throw new ApiError(refusal.status, refusal.message);
}
