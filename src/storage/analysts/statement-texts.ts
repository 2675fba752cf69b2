import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

/*
 * The driver prepares each text of a statement once per connection and keeps it for the connection's life, as does the server. A
 * list of another length makes another text, and a thousand of them take some 90 MB of each of the server's processes.
 */

/**
 * Whether the column, of texts or numbers, has one of the values: one text for lists of any length, which drizzle's `inArray` does
 * not give.
 */
export function among(column: PgColumn, values: readonly (string | number)[]): SQL {
  // The comparison takes the collation from the column.
  const type = column.getSQLType().replace(/ COLLATE .*/, "");
  return sql`${column} = any(${formatArray(values)}::${sql.raw(type)}[])`;
}

/** The rows in their order, for one insertion each piece: its length is a power of two. */
export function* insertPieces<R>(rows: readonly R[]): Generator<R[]> {
  for (let at = 0; at < rows.length; ) {
    const end = at + 2 ** Math.floor(Math.log2(rows.length - at));
    yield rows.slice(at, end);
    at = end;
  }
}

/** As PostgreSQL writes it (8.15.2). */
function formatArray(values: readonly unknown[]): string {
  return `{${values.map((value) => `"${String(value).replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}
