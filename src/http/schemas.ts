import { type TSchema, Type } from "@sinclair/typebox";

/** Schemas that bodies and answers of several rooms are made of. A schema's `$id` is its name in the document. */

export const Uuid = Type.String({ format: "uuid" });
export const Timestamp = Type.String({ format: "date-time" });
export const NextCursor = Type.Union([Type.String(), Type.Null()], {
  description: "Pass it as `cursor`; null on the last page.",
});

/** One of some strings. For answers: a body that is checked takes a union of literals. */
export function enumOf<const T extends string>(values: readonly T[], description?: string) {
  return Type.Unsafe<T>({ type: "string", enum: values, ...(description === undefined ? null : { description }) });
}

/** A text without control characters, and so without line breaks. For bodies. */
export function oneLine(description: string, maxLength: number, minLength: number) {
  return Type.String({ minLength, maxLength, pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$", description });
}

/** An object with one member, which is a list. */
export function listOf<const N extends string, S extends TSchema>($id: string, name: N, element: S) {
  return Type.Object({ [name]: Type.Array(element) } as { [K in N]: ReturnType<typeof Type.Array<S>> }, { $id });
}

/** A page of a list, and where the next one begins. */
export function pageOf<const N extends string, S extends TSchema>($id: string, name: N, element: S) {
  return Type.Object(
    { [name]: Type.Array(element), next_cursor: NextCursor } as { [K in N]: ReturnType<typeof Type.Array<S>> } & {
      next_cursor: typeof NextCursor;
    },
    { $id },
  );
}
