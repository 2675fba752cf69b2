/** One environment variable: its name, its meaning, and how its text is parsed. */
export interface Setting<T> {
  readonly name: string;
  readonly meaning: string;
  /** Completes "it should be …". */
  readonly expected: string;
  /** The value, or undefined if the text is invalid. */
  parse(text: string): T | undefined;
  /** The text that replaces an unset variable. Null: no default. */
  readonly default: string | null;
  /** The documentation's text in place of a default. */
  readonly unset?: string;
  /** The value is never shown. */
  readonly secret?: true;
  /** An unset variable is generated once and kept in this file of WAYBILL_HOME. */
  readonly generated?: {
    readonly file: string;
    make(): string;
    /** Stored data is useless without it, so it is never regenerated beside existing data. */
    readonly keepsData?: true;
    /** The key of another setting: if that is 0 or unset, no secret is generated and the value is null. */
    readonly onlyWith?: string;
  };
}
