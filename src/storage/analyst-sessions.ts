import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { Session } from "chdb";
import { becomeAnalyst, type Delivery } from "./analyst-access.ts";
import { AnalystThread, type AnalystWork } from "./analyst-thread.ts";
import { EngineError } from "./engine-error.ts";
import { analystLimits } from "./limits.ts";
import { isCallable } from "./read-names.ts";
import type { ReadStatement, Unavailable } from "./read-statement.ts";
import { sqlString } from "./statement-tokens.ts";

export interface AnalystQuery {
  readonly statement: ReadStatement;
  readonly delivery: Delivery;
  /** The format for statements that name none. */
  readonly format: string;
  readonly database: string;
  /** Validated settings, with literals as values. */
  readonly settings: ReadonlyMap<string, string>;
  /** Raw values of placeholders by name, escaped as in TSV. */
  readonly params: ReadonlyMap<string, string>;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A result being streamed out. Occupies one of the few slots until it has returned its last chunk or is closed. */
export interface AnalystResult {
  /** The next bytes; null at the end. Rejects with `EngineError`. */
  next(): Promise<Uint8Array | null>;
  /** Safe to call twice. */
  close(): void;
  readonly rowsRead: number;
  readonly bytesRead: number;
}

/**
 * Runs analysts' statements on this process's engine, a few at a time.
 *
 * Invariants:
 * A1. Each statement has its own session, opened for it and closed after it (0.4 ms): no setting, parameter or role leaks from
 *     one statement to another.
 * A2. A session is restricted to an analyst's rights before it runs any statement of an analyst.
 * A3. A session is closed only once the engine has finished its statement, because otherwise the engine aborts the process.
 *     Abandoned statements are killed to make that soon.
 * A4. The engine works for a statement on its own threads or on an `AnalystThread`, never on the event loop's thread.
 * A5. At most `analystQueriesMax` statements run at once, and always one fewer than the engine has threads in this process,
 *     which leaves one for recorder and API. `analystQueriesWaitingMax` wait, each for up to `analystWaitMs`.
 */
export class AnalystSessions {
  private readonly keeper: Session;
  private readonly running = new Map<string, Run>();
  /** Idle threads: as many as have ever been needed at once. */
  private readonly idle: AnalystThread[] = [];
  private readonly waiting: ((go: boolean) => void)[] = [];
  private turns = turnsMax();
  private stopped: Promise<void> | null = null;

  readonly unavailable: Unavailable;

  /** `keeper` has every right, but only lists functions and kills statements. */
  constructor(private readonly path: string) {
    this.keeper = new Session(path);
    const functions = this.keeper.query("SELECT lower(name) FROM system.functions", "TSV").trim().split("\n");
    this.unavailable = new Set(functions.filter((name) => !isCallable(name)));
  }

  /** Resolves once the first bytes are there, so a statement that fails at once can still set the status. */
  async run(query: AnalystQuery): Promise<AnalystResult> {
    await this.turn(query.signal);
    const id = crypto.randomUUID();
    const abort = () => void this.abort(id);
    const thread = this.idle.pop() ?? new AnalystThread();
    const run = new Run(thread, query.delivery, abort, () => {
      query.signal.removeEventListener("abort", abort);
      this.running.delete(id);
      if (thread.isUsable) this.idle.push(thread);
      this.giveTurn();
    });
    this.running.set(id, run);
    query.signal.addEventListener("abort", abort, { once: true });
    const { statement, format, delivery } = query;
    await run.start({
      kind: "start",
      path: this.path,
      preparation: preparation(query, id),
      sql: statement.sql,
      format: statement.format ?? format,
      delivery,
      unavailable: this.unavailable,
    });
    return run;
  }

  /** Kills the running statements and waits for them. Safe to call twice. */
  stop(): Promise<void> {
    this.stopped ??= this.stopAll();
    return this.stopped;
  }

  private async stopAll(): Promise<void> {
    for (const refuse of this.waiting.splice(0)) refuse(false);
    await Promise.all([...this.running.keys()].map((id) => this.abort(id)));
    this.keeper.close();
  }

  /** Repeats until the statement has ended: a kill has no effect before the statement has begun. */
  private async abort(id: string): Promise<void> {
    for (let run = this.running.get(id); run !== undefined; run = this.running.get(id)) {
      run.close();
      // On this thread (3 ms): the statement to be killed may itself occupy the last thread of the pool.
      this.keeper.query(`KILL QUERY WHERE Settings['log_comment'] = '${id}'`);
      await Promise.race([run.over, delay(KILL_AGAIN_MS)]);
    }
  }

  private async turn(signal: AbortSignal): Promise<void> {
    if (this.stopped !== null) throw STOPPING;
    if (this.turns > 0) {
      this.turns -= 1;
      return;
    }
    if (this.waiting.length >= analystLimits.analystQueriesWaitingMax) throw BUSY;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push(resolve);
    const leave = () => {
      const at = this.waiting.indexOf(resolve);
      if (at === -1) return;
      this.waiting.splice(at, 1);
      resolve(false);
    };
    const timer = setTimeout(leave, analystLimits.analystWaitMs);
    signal.addEventListener("abort", leave, { once: true });
    const isOurs = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
    if (!isOurs) throw this.stopped === null ? BUSY : STOPPING;
  }

  private giveTurn(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.turns += 1;
    else next(true);
  }
}

/** Bun's thread pool has one thread per core, or as many as this variable said when the process started. */
function turnsMax(): number {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"]) || availableParallelism();
  return Math.max(1, Math.min(threads - 1, analystLimits.analystQueriesMax));
}

const KILL_AGAIN_MS = 100;
const GONE = new EngineError(394, "QUERY_WAS_CANCELLED", "Query was cancelled");
const BUSY = new EngineError(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many simultaneous queries: try again soon");
const STOPPING = new EngineError(236, "ABORTED", "The server is shutting down");

/** All preparing statements in one string, so restricting a session takes one call to the engine. */
function preparation({ database, delivery, settings, params }: AnalystQuery, id: string): string {
  const assignments = [
    ...[...settings].map(([name, value]) => `${name} = ${value}`),
    ...[...params].map(([name, value]) => `param_${name} = ${sqlString(value)}`),
    `log_comment = '${id}'`,
  ];
  return `USE \`${database.replaceAll(/[\\`]/g, "\\$&")}\`; ${becomeAnalyst(delivery, assignments)}`;
}

/** One statement, from its session to its last chunk. */
class Run implements AnalystResult {
  rowsRead = 0;
  bytesRead = 0;
  /** Resolves when the engine has finished the statement and its session is closed. */
  readonly over: Promise<void>;
  private readonly onOver: () => void;
  private first: Uint8Array | null = null;
  /** Set while the engine is working for us; the session must not be closed then. */
  private isBusy = false;
  private isClosed = false;
  private isOver = false;
  private stall: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly thread: AnalystThread,
    private readonly delivery: Delivery,
    private readonly abort: () => void,
    onEnd: () => void,
  ) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise.then(onEnd);
    this.onOver = resolve;
  }

  async start(work: AnalystWork & { kind: "start" }): Promise<void> {
    const { bytes, rowsRead, bytesRead } = await this.busy(() => this.thread.rows(work));
    this.rowsRead = rowsRead;
    this.bytesRead = bytesRead;
    this.first = bytes;
    if (this.delivery === "whole") this.close();
  }

  async next(): Promise<Uint8Array | null> {
    clearTimeout(this.stall);
    const { first } = this;
    this.first = null;
    if (first !== null) return this.handed(first);
    if (this.delivery === "whole" || this.isOver) return null;
    const { bytes } = await this.busy(() => this.thread.rows({ kind: "next" }));
    return this.handed(bytes);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.stall);
    if (this.isBusy || this.isOver) return;
    this.isOver = true;
    // A thread that died took its session with it.
    void this.thread.close().then(this.onOver, this.onOver);
  }

  private handed(chunk: Uint8Array | null): Uint8Array | null {
    if (chunk === null) this.close();
    else if (!this.isClosed) this.stall = setTimeout(this.abort, analystLimits.analystStallMs);
    return chunk;
  }

  /** Marks the engine as busy during `work`. If the result was closed meanwhile or `work` fails, everything ends afterwards. */
  private async busy<T>(work: () => Promise<T>): Promise<T> {
    if (this.isClosed) throw GONE;
    this.isBusy = true;
    try {
      return await work();
    } catch (error) {
      this.isClosed = true;
      throw EngineError.from(error);
    } finally {
      this.isBusy = false;
      if (this.isClosed) this.close();
    }
  }
}
