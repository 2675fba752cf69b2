import { type TSchema, Type, TypeGuard } from "@sinclair/typebox";
import { NO_CONTROL_PATTERN } from "../domain/texts/control-characters.ts";
import { isJsonObject } from "../domain/texts/json.ts";

/** Schemas shared by the bodies and answers of several folders. A schema's `$id` is its name in the document. */

export const Uuid = Type.String({ format: "uuid" });
export const Timestamp = Type.String({ format: "date-time" });
export const NextCursor = Type.Union([Type.String(), Type.Null()], {
  description: "Pass it as `cursor`; null on the last page.",
});

/** One of a set of strings. For answers only; a body that is validated uses a union of literals. */
export function enumSchema<const T extends string>(values: readonly T[], description?: string) {
  return Type.Unsafe<T>({ type: "string", enum: values, ...(description === undefined ? null : { description }) });
}

/** Declares in the document that a text must not be blank. The store checks it, and words the error. */
export const NOT_BLANK = { allOf: [{ type: "string", pattern: "\\S" }] } as const;

/** A text without control characters, and therefore without line breaks, that is not blank. For bodies. */
export function oneLine(description: string, maxLength: number, minLength: number) {
  return Type.String({ minLength, maxLength, pattern: NO_CONTROL_PATTERN, description, ...NOT_BLANK });
}

/** A member of a body that may be left out: null counts as absent. */
export function optional(schema: TSchema) {
  const { description, ...unsaid } = schema;
  // A member's description goes beside its alternatives; a named schema keeps its own description everywhere.
  if (description === undefined || schema.$id !== undefined) return Type.Optional(Type.Union([schema, Type.Null()]));
  return Type.Optional(Type.Union([unsaid, Type.Null()], { description }));
}

/** For the document: exactly one of these members is there. The endpoint itself names what is missing. */
export function exactlyOne(...names: readonly string[]) {
  const choices = names.map((name) => ({ required: [name], properties: { [name]: { type: "string" } } }));
  return { allOf: [{ oneOf: choices }] };
}

/** Whether opens and clicks of an e-mail are tracked; an absent member falls back to the next level. */
export function trackingSchema(description: string) {
  const of = (what: string) => Type.Optional(Type.Boolean({ description: what }));
  return Type.Object(
    { opens: of("whether there is a pixel"), clicks: of("whether links lead by us") },
    { additionalProperties: false, description },
  );
}

/** Returns the value without null members that the schema allows to be absent, unless null has a meaning of its own. */
export function withoutNulls(schema: TSchema, value: unknown): unknown {
  if (TypeGuard.IsUnion(schema)) return schema.anyOf.reduce((left, one) => withoutNulls(one, left), value);
  if (TypeGuard.IsArray(schema) && Array.isArray(value)) {
    const items = value.map((item: unknown) => withoutNulls(schema.items, item));
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  if (!TypeGuard.IsObject(schema) || !isJsonObject(value)) return value;
  let copy: Record<string, unknown> | null = null;
  // Undeclared members may be many, and are skipped.
  for (const [name, declared] of Object.entries(schema.properties)) {
    if (!Object.hasOwn(value, name)) continue;
    const member = value[name];
    const isAbsent = member === null && isNullAbsent(declared);
    const bare = isAbsent ? undefined : withoutNulls(declared, member);
    if (bare === member) continue;
    copy ??= { ...value };
    if (isAbsent) delete copy[name];
    else copy[name] = bare;
  }
  return copy ?? value;
}

/** Returns the schema for the document: null is allowed where `withoutNulls` treats it as absent. */
export function withNulls<S extends TSchema>(schema: S): S;
export function withNulls(schema: TSchema): TSchema {
  if (TypeGuard.IsUnion(schema)) return { ...schema, anyOf: schema.anyOf.map((one) => withNulls(one)) };
  if (TypeGuard.IsArray(schema)) return { ...schema, items: withNulls(schema.items) };
  if (!TypeGuard.IsObject(schema)) return schema;
  const members = Object.entries(schema.properties).map(([name, member]) => {
    const shown = withNulls(member);
    return [name, isNullAbsent(member) ? optional(shown) : shown] as const;
  });
  return { ...schema, properties: Object.fromEntries(members) };
}

function isNullAbsent(member: TSchema): boolean {
  return TypeGuard.IsOptional(member) && !takesNull(member);
}

function takesNull(schema: TSchema): boolean {
  return TypeGuard.IsNull(schema) || (TypeGuard.IsUnion(schema) && schema.anyOf.some(takesNull));
}

/** An object whose only member is a list. */
export function listSchema<const N extends string, S extends TSchema>($id: string, name: N, element: S) {
  return Type.Object({ [name]: Type.Array(element) } as { [K in N]: ReturnType<typeof Type.Array<S>> }, { $id });
}

/** One page of a list, with the cursor of the next page. */
export function pageSchema<const N extends string, S extends TSchema>($id: string, name: N, element: S) {
  return Type.Object(
    { [name]: Type.Array(element), next_cursor: NextCursor } as { [K in N]: ReturnType<typeof Type.Array<S>> } & {
      next_cursor: typeof NextCursor;
    },
    { $id },
  );
}
