declare const TYPES: unique symbol;

/** A call between two processes of the same start: its name, argument and result. */
export interface CallName<Argument, Result> {
  readonly name: string;
  readonly [TYPES]?: (argument: Argument) => Result;
}

/**
 * Declares a call. Argument and result are cloned in transit: plain data, bytes and dates, without functions or
 * classes.
 */
export function callName<Argument, Result>(name: string): CallName<Argument, Result> {
  return { name };
}

/** Calls in both directions between two processes of the same start. */
export interface Calls {
  /**
   * Rejects with the other side's error: its message, and the members that classify it. Rejects with `TransportError`
   * when the other process is gone, and with the signal's reason, which also reaches the other side.
   */
  call<Argument, Result>(
    name: CallName<Argument, Result>,
    argument: Argument,
    signal?: AbortSignal,
  ): Promise<Awaited<Result>>;
  /** Answers the calls of that name. The signal aborts when the caller has given up or is gone. */
  serve<Argument, Result>(
    name: CallName<Argument, Result>,
    handler: (argument: Argument, signal: AbortSignal) => Result | Promise<Result>,
  ): void;
  /** Aborts when the other process is gone. */
  readonly gone: AbortSignal;
}
