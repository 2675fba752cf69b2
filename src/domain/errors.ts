import type { Json } from "./json.ts";

/** A caller's mistake or a refusal, with the text that the caller sees. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  constructor(
    readonly status: 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 422 | 429 | 500 | 503,
    message: string,
    /** Further members of the error body, for example `violations`. */
    readonly members: Readonly<Record<string, Json>> = {},
    /** When to try again; null: not said, or as the rate window says. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }
}

/** A call that did not come back: whether it took effect is unknown, so what follows must be safe to repeat. */
export class TransportError extends Error {
  override readonly name = "TransportError";
}

/** A call that was refused before it could take effect: the store is full, loading, or not there. Safe to repeat. */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";
}

/** Whether a store or a process is away, rather than something of ours broken: what failed may be repeated. */
export function isOutage(error: unknown): error is TransportError | UnavailableError {
  return error instanceof TransportError || error instanceof UnavailableError;
}

/** What the operator configured does not work, or does not fit what is there. One line a problem, no secret in it. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly string[];

  constructor(...problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** Stops the caller when an invariant of ours is broken. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${message}`);
}
