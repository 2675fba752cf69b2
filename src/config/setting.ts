/** One environment variable: its name, what it means, and what its text becomes. */
export interface Setting<T> {
  readonly name: string;
  readonly meaning: string;
  /** Completes "it should be …". */
  readonly expected: string;
  /** The value, or undefined where the text is not as expected. */
  parse(text: string): T | undefined;
  /** Stands in for an unset variable, as text. Null: nothing does. */
  readonly default: string | null;
  /** What the documentation says in place of a default. */
  readonly unset?: string;
  /** Checked already, but what it sets is not built yet. */
  readonly planned?: true;
  /** The value is never shown. */
  readonly secret?: true;
  /** An unset variable is made up once and kept in this file of WAYBILL_HOME. */
  readonly generated?: {
    readonly file: string;
    make(): string;
    /** Stored data is of no use without it: beside data it is never made anew. */
    readonly keepsData?: true;
    /** The key of another setting: where that is 0 or unset, nothing is made up, and the value is null. */
    readonly onlyWith?: string;
  };
}
