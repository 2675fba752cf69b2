import type { Clock } from "../domain/clock.ts";
import { isOutage } from "../domain/errors.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { AnyDb, Database } from "./postgres/database.ts";

export interface OldRowsOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
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
export class OldRows {
  private readonly sweeps: Repeated;

  constructor(private readonly options: OldRowsOptions) {
    this.sweeps = new Repeated(() => this.sweep(), options.clock, SWEEP_MS);
  }

  /** Starts removing them. Call once only. */
  start(): void {
    this.sweeps.start();
  }

  /** Safe to repeat. */
  stop(): Promise<void> {
    return this.sweeps.stop();
  }

  /** Removes the rows that are too old now. Never rejects. */
  async sweep(): Promise<void> {
    const { database, telemetry, name, piecesMax } = this.options;
    try {
      const nowMs = await this.options.agreedMs();
      for (let pieces = 0; pieces < piecesMax && !this.sweeps.isStopping; pieces += 1) {
        const found = await database.write((transaction) => this.options.remove(transaction, ROWS_AT_ONCE, nowMs));
        if (found < ROWS_AT_ONCE) return;
      }
    } catch (error) {
      const level = isOutage(error) ? "warn" : "error";
      telemetry.log(level, `${name} could not be removed`, { error: String(error) });
    }
  }
}
