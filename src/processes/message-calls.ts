import type { CallName, Calls } from "../domain/calls.ts";
import { ConfigurationError, TransportError, UnavailableError } from "../domain/errors.ts";
import { hasCode } from "../domain/has-code.ts";

/** A message between two processes. */
export type CallMessage =
  | { readonly kind: "call"; readonly id: number; readonly name: string; readonly argument: unknown }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "answer"; readonly id: number; readonly result: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly error: ErrorParts };

type Handler = (argument: unknown, signal: AbortSignal) => unknown;

/**
 * Calls over a line that carries messages whole and in order, as a child process's channel does.
 *
 * Invariants:
 * C1. Each call settles once: with its answer, when its caller gives up, or when the other process is gone.
 * C2. When the other process is gone, the signals of all its calls that are still in progress abort.
 */
export class MessageCalls implements Calls {
  private readonly handlers = new Map<string, Handler>();
  private readonly waiting = new Map<number, PromiseWithResolvers<unknown>>();
  private readonly working = new Map<number, AbortController>();
  private readonly end = new AbortController();
  private made = 0;

  constructor(private readonly send: (message: CallMessage) => void) {}

  get gone(): AbortSignal {
    return this.end.signal;
  }

  async call<Argument, Result>(
    { name }: CallName<Argument, Result>,
    argument: Argument,
    signal?: AbortSignal,
  ): Promise<Awaited<Result>> {
    signal?.throwIfAborted();
    if (this.gone.aborted) throw otherIsGone();
    this.made += 1;
    const id = this.made;
    const call = Promise.withResolvers<unknown>();
    this.waiting.set(id, call);
    const giveUp = () => {
      this.trySend({ kind: "cancel", id });
      call.reject(signal?.reason);
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    this.trySend({ kind: "call", id, name, argument });
    try {
      // Both processes run the same build, and the name determines the type of the result.
      return (await call.promise) as Awaited<Result>;
    } finally {
      this.waiting.delete(id);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  serve<Argument, Result>(
    { name }: CallName<Argument, Result>,
    handler: (argument: Argument, signal: AbortSignal) => Result | Promise<Result>,
  ): void {
    // As above.
    this.handlers.set(name, (argument, signal) => handler(argument as Argument, signal));
  }

  /** Handles a message from the line. */
  take(message: CallMessage): void {
    switch (message.kind) {
      case "call":
        void this.answer(message);
        return;
      case "cancel":
        this.working.get(message.id)?.abort();
        return;
      case "answer":
        this.waiting.get(message.id)?.resolve(message.result);
        return;
      case "failure":
        this.waiting.get(message.id)?.reject(restoreError(message.error));
    }
  }

  /** Handles the loss of the line: the other process is gone. Safe to repeat. */
  cut(): void {
    if (this.end.signal.aborted) return;
    this.end.abort();
    for (const call of this.waiting.values()) call.reject(otherIsGone());
    for (const work of this.working.values()) work.abort();
  }

  private async answer({ id, name, argument }: CallMessage & { readonly kind: "call" }): Promise<void> {
    const work = new AbortController();
    this.working.set(id, work);
    try {
      const handler = this.handlers.get(name);
      if (handler === undefined) throw new Error(`there is no answer to ${name} in this process`);
      this.trySend({ kind: "answer", id, result: await handler(argument, work.signal) });
    } catch (error) {
      this.trySend({ kind: "failure", id, error: errorParts(error) });
    }
    this.working.delete(id);
  }

  /** Sends a message; a line that accepts no more messages is cut. */
  private trySend(message: CallMessage): void {
    if (this.gone.aborted) return;
    try {
      this.send(message);
    } catch (error) {
      if (!isClosed(error)) throw error;
      this.cut();
    }
  }
}

function otherIsGone(): TransportError {
  return new TransportError("the called process has ended");
}

function isClosed(error: unknown): boolean {
  return hasCode(error, "ERR_IPC_CHANNEL_CLOSED");
}

/** An error as it travels from one process to another. */
interface ErrorParts {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** The thrower's own description of the kind of error: SQLSTATE, constraint, code of the event store. */
  readonly members: Readonly<Record<string, string | number | readonly string[]>>;
}

function errorParts(error: unknown): ErrorParts {
  if (!(error instanceof Error)) return { name: "Error", message: String(error), stack: "", members: {} };
  const members: Record<string, string | number | readonly string[]> = {};
  for (const [name, value] of Object.entries(error)) {
    if (typeof value === "string" || typeof value === "number" || isTexts(value)) members[name] = value;
  }
  return { name: error.name, message: error.message, stack: error.stack ?? "", members };
}

/** Restores the class of errors that callers distinguish by class. */
function restoreError({ name, message, stack, members }: ErrorParts): Error {
  const { problems } = members;
  if (name === "ConfigurationError" && isTexts(problems)) return new ConfigurationError(...problems);
  const known = KNOWN.get(name);
  if (known !== undefined) return new known(message);
  const error = Object.assign(new Error(message), members);
  error.name = name;
  error.stack = stack;
  return error;
}

const KNOWN = new Map<string, new (message: string) => Error>([
  ["TransportError", TransportError],
  ["UnavailableError", UnavailableError],
]);

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
