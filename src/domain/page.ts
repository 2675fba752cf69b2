export interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page; null on the last one. */
  readonly nextCursor: string | null;
}
