/** Options of one section of the benchmark. */
export interface SectionOptions {
  readonly rounds: number;
  /** Duration of one round. */
  readonly seconds: number;
  readonly jobs: number;
  /** Requests per second, for sections that keep a rate. */
  readonly rate: number;
  /** Duration of a sustained load, for sections that look for growth. */
  readonly minutes: number;
  /** Only checks that the section runs; the figures are meaningless. */
  readonly smoke: boolean;
}

/** Measures, prints a table, and returns the data for the JSON. */
export type Section = (options: SectionOptions) => Promise<unknown>;
