import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

/*
 * The driver prepares each statement text once per connection and keeps it for the connection's life, as does the
 * server. A list of another length makes another text, and a thousand of them take some 90 MB in each of the server's
 * processes.
 */

/**
 * Whether the column, of texts or numbers, has one of the values. Uses one text for lists of any length, unlike
 * drizzle's `inArray`.
 */
export function among(column: PgColumn, values: readonly (string | number)[]): SQL {
  // The comparison takes the collation from the column.
  const type = column.getSQLType().replace(/ COLLATE .*/, "");
  return sql`${column} = any(${formatArray(values)}::${sql.raw(type)}[])`;
}

/** Splits the rows, in order, into pieces for one insertion each, whose lengths are powers of two. */
export function* insertPieces<R>(rows: readonly R[]): Generator<R[]> {
  for (let at = 0; at < rows.length; ) {
    const end = at + 2 ** Math.floor(Math.log2(rows.length - at));
    yield rows.slice(at, end);
    at = end;
  }
}

/** Formats an array as PostgreSQL does (8.15.2). */
function formatArray(values: readonly unknown[]): string {
  return `{${values.map((value) => `"${String(value).replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}
