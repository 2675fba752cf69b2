import type { Page } from "../../domain/page.ts";

const ITEMS_MAX = 500;

/** Returns how many rows to read for a page of `limit` items: one extra, which shows whether there is a next page. */
export function rowsToRead(limit: number): number {
  return clamped(limit) + 1;
}

/** Builds a page from rows read with `rowsToRead(limit)`. `cursor` identifies a row; the next page begins after it. */
export function buildPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  { item, cursor }: { item: (row: Row) => Item; cursor: (row: Row) => string },
): Page<Item> {
  const shown = rows.slice(0, clamped(limit));
  const last = shown.at(-1);
  const hasMore = rows.length > shown.length && last !== undefined;
  return { items: shown.map(item), nextCursor: hasMore ? cursor(last) : null };
}

function clamped(limit: number): number {
  return Math.min(Math.max(1, Math.trunc(limit)), ITEMS_MAX);
}
