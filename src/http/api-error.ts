import type { Json } from "../domain/json.ts";

/** A caller's mistake or a refusal, with the text for the caller. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  constructor(
    readonly status: 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503,
    message: string,
    /** Further members of the error body, for example `violations`. */
    readonly members: Readonly<Record<string, Json>> = {},
    /** When to try again; null: not specified, or as the rate window says. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }
}

/** A refusal of a body that its caller still sends. Nothing more of it is read: the connection ends with the answer. */
export class BodyGivenUp extends ApiError {}
