import type { RuntimePorts } from "../domain/runtime-ports.ts";
import { Sweep } from "../domain/sweep.ts";
import type { AnyDb, Database } from "./postgres/database.ts";

export interface OldRowsOptions extends RuntimePorts {
  readonly database: Database;
  /** The kind of rows, for the log. */
  readonly name: string;
  /** Pieces per sweep. */
  readonly piecesMax: number;
  /** Returns the time for judging their age, on which several clocks agree. */
  agreedMs(): Promise<number>;
  /** Removes some of them, about `limit`. Resolves to how many it found: fewer than `limit` if there are no more. */
  remove(transaction: AnyDb, limit: number, nowMs: number): Promise<number>;
}

const SWEEP_MS = 60 * 60 * 1000;
const ROWS_AT_ONCE = 1_000;

/** Removes rows that are too old, every hour, in pieces that do not block other work. */
export class OldRows extends Sweep {
  constructor(private readonly options: OldRowsOptions) {
    super(options, { everyMs: SWEEP_MS, failure: `${options.name} could not be removed` });
  }

  protected override async work(): Promise<void> {
    const { database, piecesMax } = this.options;
    const nowMs = await this.options.agreedMs();
    for (let pieces = 0; pieces < piecesMax && !this.isStopping; pieces += 1) {
      const found = await database.write((transaction) => this.options.remove(transaction, ROWS_AT_ONCE, nowMs));
      if (found < ROWS_AT_ONCE) return;
    }
  }
}
