/** Returns the rows of a statement's answer: the drivers return the rows, or an object that contains them. */
export function readRows(answer: unknown): readonly Readonly<Record<string, unknown>>[] {
  const rows: unknown = Array.isArray(answer) ? answer : Reflect.get(Object(answer), "rows");
  // A SELECT or RETURNING answers with objects by column name.
  return Array.isArray(rows) ? (rows as readonly Readonly<Record<string, unknown>>[]) : [];
}
