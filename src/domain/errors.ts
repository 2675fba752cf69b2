/**
 * A call without an answer: whether it took effect is unknown, so the caller may only take steps that are safe to
 * repeat.
 */
export class TransportError extends Error {
  override readonly name = "TransportError";
}

/** A call that was refused before it could take effect: the store is full, loading, or away. Safe to repeat. */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";
}

/** The machine has no file descriptors, memory or disk left, or its disk fails. */
const OF_THE_MACHINE: ReadonlySet<unknown> = new Set("EMFILE ENFILE ENOBUFS ENOMEM ENOSPC EDQUOT EIO EROFS".split(" "));

/**
 * Whether a store, a process or the machine is at its limit for now, as opposed to a bug of ours: the failed call may
 * be repeated.
 */
export function isOutage(error: unknown): boolean {
  if (error instanceof TransportError || error instanceof UnavailableError) return true;
  return error instanceof Error && "code" in error && OF_THE_MACHINE.has(error.code);
}

/**
 * The operator's configuration does not work, or does not fit the stored data. One line per problem, without secrets.
 */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly string[];

  constructor(...problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** Throws when an internal invariant is broken. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${message}`);
}
