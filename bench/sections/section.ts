/** What one section of the benchmark is told. */
export interface SectionOptions {
  readonly rounds: number;
  /** Of one round. */
  readonly seconds: number;
  readonly jobs: number;
  /** Requests a second, where a section keeps to a rate. */
  readonly rate: number;
  /** Of a load that goes on, where growth is looked for. */
  readonly minutes: number;
  /** Only whether it runs at all: the figures mean nothing. */
  readonly smoke: boolean;
}

/** Measures, prints a table, and answers what goes into the JSON. */
export type Section = (options: SectionOptions) => Promise<unknown>;
