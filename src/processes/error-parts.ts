import { ConfigurationError, TransportError, UnavailableError } from "../domain/errors.ts";

/** An error as it travels from one process to another. */
export interface ErrorParts {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** The thrower's own description of the kind of error: SQLSTATE, constraint, code of the event store. */
  readonly members: Readonly<Record<string, string | number | readonly string[]>>;
}

export function errorParts(error: unknown): ErrorParts {
  if (!(error instanceof Error)) return { name: "Error", message: String(error), stack: "", members: {} };
  const members: Record<string, string | number | readonly string[]> = {};
  for (const [name, value] of Object.entries(error)) {
    if (typeof value === "string" || typeof value === "number" || isTexts(value)) members[name] = value;
  }
  return { name: error.name, message: error.message, stack: error.stack ?? "", members };
}

/** Restores the class of errors that callers distinguish by class. */
export function errorOf({ name, message, stack, members }: ErrorParts): Error {
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
