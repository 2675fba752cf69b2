import type { Static, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { ApiError, about } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";
import type { BodyBounds } from "./request-body.ts";
import { withNulls, withoutNulls } from "./schemas.ts";

/** Errors read from an invalid body, enough to explain it: there can be as many as the body has values. */
const ERRORS_MAX = 100;
const NAMES_MAX = 20;

/**
 * The schema of one operator call's body, compiled at its first use: a start has a hundred of them. A member that may be absent
 * may also be null.
 */
export class OperatorBody<Schema extends TSchema> {
  private compiled: TypeCheck<Schema> | null = null;

  constructor(private readonly schema: Schema) {}

  /** The schema for the document. */
  get documented(): Schema {
    return withNulls(this.schema);
  }

  /** Throws an `ApiError`: 400 that names an unknown, missing or mistyped field, or 413. */
  async read(door: FrontDoor, exchange: Exchange, bounds?: BodyBounds): Promise<Static<Schema>> {
    return this.check((await door.json(exchange, bounds)).value);
  }

  /** As `read`; null if there is no body, or an empty one. */
  async readIfAny(door: FrontDoor, exchange: Exchange): Promise<Static<Schema> | null> {
    const body = await door.jsonIfAny(exchange);
    return body === null ? null : this.check(body.value);
  }

  /** Checks a body that has been read already. Throws an `ApiError` 400 that names an unknown, missing or mistyped field. */
  check(value: unknown): Static<Schema> {
    this.compiled ??= TypeCompiler.Compile(this.schema);
    const given = withoutNulls(this.schema, value);
    if (this.compiled.Check(given)) return given;
    const { message, param, code } = explain(first(this.compiled.Errors(given), ERRORS_MAX));
    throw new ApiError(param === undefined ? 400 : about(param, code), message);
  }
}

interface Explained {
  readonly message: string;
  /** Undefined: it is about the body as a whole. */
  readonly param?: string;
  readonly code?: "unknown_member";
}

function explain(errors: readonly ValueError[]): Explained {
  // A body of another kind has other fields, so the wrong kind is the error to report.
  const kind = errors.find(({ type }) => type === ValueErrorType.Literal);
  if (kind !== undefined) return ofField(kind, `must be ${expectation(kind)}`);
  const unknown = [...new Set(first(everyError(errors), ERRORS_MAX).filter(isUnknownField).map(formatField))];
  const [param] = unknown;
  if (param !== undefined) {
    const names = unknown.slice(0, NAMES_MAX).join(", ");
    const more = unknown.length > NAMES_MAX ? ", and more" : "";
    return { message: `unknown field${unknown.length > 1 ? "s" : ""}: ${names}${more}`, param, code: "unknown_member" };
  }
  const [error] = errors;
  if (error === undefined) return { message: "the body does not have the expected shape" };
  if (error.type === ValueErrorType.ObjectRequiredProperty) return ofField(error, "is required");
  return error.path === ""
    ? { message: `the body must be ${expectation(error)}` }
    : ofField(error, `must be ${expectation(error)}`);
}

function ofField(error: ValueError, what: string): Explained {
  const param = formatField(error);
  return { message: `${param} ${what}`, param };
}

function isUnknownField({ type }: ValueError): boolean {
  return type === ValueErrorType.ObjectAdditionalProperties;
}

/** Also yields the errors of each alternative of a member, such as an object that may be null. */
function* everyError(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    yield error;
    for (const each of error.errors) yield* everyError(each);
  }
}

function first<T>(all: Iterable<T>, count: number): readonly T[] {
  return Iterator.from(all).take(count).toArray();
}

/** Returns the field's requirement, taken from the schema's description. */
function expectation({ schema, message }: ValueError): string {
  const expected: unknown = schema["description"];
  return typeof expected === "string" ? expected : lowerFirst(message);
}

/** Turns `/channels/0` into `channels[0]`. */
function formatField({ path }: ValueError): string {
  const [name = "", ...inner] = path.slice(1).split("/");
  return [name.slice(0, 100), ...inner.map((part) => `[${part.slice(0, 100)}]`)].join("");
}

function lowerFirst(message: string): string {
  return message.replace(/^Expected /, "").replace(/^[A-Z]/, (letter) => letter.toLowerCase());
}
