import { DrizzleQueryError } from "drizzle-orm/errors";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { type Clock, within } from "../../domain/clock.ts";
import { TransportError, UnavailableError } from "../../domain/errors.ts";
import { sqlState } from "./sql-state.ts";

/** A drizzle database or transaction on PostgreSQL, with any driver (PGlite, Bun.SQL). */
export type AnyDb = PgDatabase<PgQueryResultHKT>;

/** An open connection to PostgreSQL and the function that closes it. */
export interface OpenDatabase {
  readonly db: AnyDb;
  close(): Promise<void>;
  /** To be called when an answer did not arrive in time. */
  onSilence?(): void;
}

const READ_TIMEOUT_MS = 2_000;
const WRITE_TIMEOUT_MS = 10_000;

/**
 * The registry's access to PostgreSQL: every call has a deadline, and an outage becomes an error of the domain. Any
 * other error is a bug, and is rethrown without the statement's parameters: they are people's addresses and texts, and
 * errors are logged.
 */
export class Database {
  constructor(
    private readonly db: AnyDb,
    private readonly clock: Clock,
    private readonly onSilence: () => void = () => {},
  ) {}

  /** Rejects with `UnavailableError` if PostgreSQL cannot be reached or does not answer in time. */
  async read<T>(query: (db: AnyDb) => Promise<T>): Promise<T> {
    const late = () => new UnavailableError("the registry did not answer in time");
    try {
      return await this.within(READ_TIMEOUT_MS, query(this.db), late);
    } catch (error) {
      throw outage(error) === null ? withoutParameters(error) : unreachable(error);
    }
  }

  /**
   * Runs the change in one transaction. Rejects with `UnavailableError` if it certainly had no effect, with `TransportError` if
   * its commit was sent but not answered.
   */
  async write<T>(change: (transaction: AnyDb) => Promise<T>): Promise<T> {
    const late = () => new TransportError("the registry did not answer in time");
    try {
      return await this.within(WRITE_TIMEOUT_MS, this.db.transaction(change), late);
    } catch (error) {
      const kind = outage(error);
      if (kind === "lost") throw new TransportError("the registry did not answer", { cause: error });
      throw kind === null ? withoutParameters(error) : unreachable(error);
    }
  }

  private within<T>(ms: number, call: Promise<T>, failure: () => Error): Promise<T> {
    const late = () => {
      this.onSilence();
      throw failure();
    };
    return within({ clock: this.clock, ms, late }, () => call);
  }
}

function unreachable(cause: unknown): UnavailableError {
  return new UnavailableError("the registry cannot be reached", { cause });
}

function withoutParameters(error: unknown): unknown {
  if (!(error instanceof DrizzleQueryError)) return error;
  // The server's message can quote a parameter, too.
  const { state, code } = sqlState(error);
  return new Error(`the registry refused a statement (${state ?? code ?? "no code"}): ${error.query}`, {
    cause: error.cause,
  });
}

/** Server shut down or connection lost: the transaction may have been committed nevertheless. */
const LOST_STATES = /^(08|57P)/;
/** Out of resources, failed by its system, cancelled, deadlocked, locked, on a standby: the transaction was rolled back. */
const REFUSED_STATES = /^(53|58|57014|40|55P03|25P03|25006)/;
/** Bun.SQL could not connect at all. */
const REFUSED_CODE = "ERR_POSTGRES_CONNECTION_REFUSED";
/** Other connection errors, from Bun.SQL and the operating system. */
const LOST_CODES = /^(ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME|TLS)|E(CONN|PIPE|HOST|NET|TIMEDOUT))/;

function outage(error: unknown): "lost" | "refused" | null {
  const { state, code } = sqlState(error);
  if (state !== null) return LOST_STATES.test(state) ? "lost" : REFUSED_STATES.test(state) ? "refused" : null;
  if (code === REFUSED_CODE) return "refused";
  return code !== null && LOST_CODES.test(code) ? "lost" : null;
}
