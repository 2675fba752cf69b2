import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { Session } from "chdb";
import { limits } from "../domain/limits.ts";
import { becomeAnalyst, type Delivery } from "./analyst-access.ts";
import { AnalystThread, type AnalystWork } from "./analyst-thread.ts";
import { EngineError } from "./engine-error.ts";
import { isCallable } from "./read-names.ts";
import type { ReadStatement, Unavailable } from "./read-statement.ts";
import { sqlString } from "./sql-string.ts";

export interface AnalystQuery {
  readonly statement: ReadStatement;
  readonly delivery: Delivery;
  /** The format of a text that names none. */
  readonly format: string;
  readonly database: string;
  /** Settings, checked; their values are literals. */
  readonly settings: ReadonlyMap<string, string>;
  /** Values of placeholders by name, as they came: escaped as in TSV. */
  readonly params: ReadonlyMap<string, string>;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
}

/** Rows on their way out. Keeps one of the few turns until it has given its last chunk or is closed. */
export interface AnalystResult {
  /** The next bytes; null: there are no more. Rejects with `EngineError`. */
  next(): Promise<Uint8Array | null>;
  /** Safe to repeat. */
  close(): void;
  readonly rowsRead: number;
  readonly bytesRead: number;
}

/**
 * Runs analysts' statements on the engine of this process, a few at a time.
 *
 * Invariants:
 * A1. A statement has a session of its own, made for it and closed after it (0.4 ms): no setting, parameter or role of one
 *     is ever another's.
 * A2. A session is an analyst's before its first statement of an analyst's.
 * A3. A session is closed when the engine is done with its statement, not before: the engine aborts the process otherwise.
 *     What nobody waits for is killed, so that this is soon.
 * A4. What the engine does for a statement it does on threads of its own or on an `AnalystThread`, never on that of the
 *     event loop.
 * A5. At most `analystQueriesMax` statements are under way, and always one fewer than the process has threads for the
 *     engine, so that recorder and API have one. `analystQueriesWaitingMax` wait, each for `analystWaitMs`.
 */
export class AnalystSessions {
  private readonly keeper: Session;
  private readonly running = new Map<string, Run>();
  /** Threads that wait for a statement: as many as have ever been needed at once. */
  private readonly idle: AnalystThread[] = [];
  private readonly waiting: ((go: boolean) => void)[] = [];
  private turns = turnsMax();
  private stopped: Promise<void> | null = null;

  readonly unavailable: Unavailable;

  /** `keeper` may do anything, and does nothing but list functions and kill statements. */
  constructor(private readonly path: string) {
    this.keeper = new Session(path);
    const functions = this.keeper.query("SELECT lower(name) FROM system.functions", "TSV").trim().split("\n");
    this.unavailable = new Set(functions.filter((name) => !isCallable(name)));
  }

  /** Answers when the first bytes are there, so that a statement that fails at once has a status. */
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

  /** Kills what is under way and waits for it. Safe to repeat. */
  stop(): Promise<void> {
    this.stopped ??= this.stopAll();
    return this.stopped;
  }

  private async stopAll(): Promise<void> {
    for (const refuse of this.waiting.splice(0)) refuse(false);
    await Promise.all([...this.running.keys()].map((id) => this.abort(id)));
    this.keeper.close();
  }

  /** Until it is over: a kill finds nothing where its statement has not begun. */
  private async abort(id: string): Promise<void> {
    for (let run = this.running.get(id); run !== undefined; run = this.running.get(id)) {
      run.close();
      // On this thread (3 ms): all those of the pool may be taken, by the very statement that is to end.
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
    if (this.waiting.length >= limits.analystQueriesWaitingMax) throw BUSY;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push(resolve);
    const leave = () => {
      const at = this.waiting.indexOf(resolve);
      if (at === -1) return;
      this.waiting.splice(at, 1);
      resolve(false);
    };
    const timer = setTimeout(leave, limits.analystWaitMs);
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

/** Bun's thread pool has as many threads as the machine has cores, or as this variable said when the process started. */
function turnsMax(): number {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"]) || availableParallelism();
  return Math.max(1, Math.min(threads - 1, limits.analystQueriesMax));
}

const KILL_AGAIN_MS = 100;
const GONE = new EngineError(394, "QUERY_WAS_CANCELLED", "Query was cancelled");
const BUSY = new EngineError(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many simultaneous queries: try again soon");
const STOPPING = new EngineError(236, "ABORTED", "The server is shutting down");

/** One string of statements, so that making a session an analyst's is one call to the engine. */
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
  /** Resolves when the engine is done with the statement and its session is closed. */
  readonly over: Promise<void>;
  private readonly onOver: () => void;
  private first: Uint8Array | null = null;
  /** Set while the engine works for us; the session must not be closed then. */
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
    // A thread that is gone has taken its session with it.
    void this.thread.close().then(this.onOver, this.onOver);
  }

  private handed(chunk: Uint8Array | null): Uint8Array | null {
    if (chunk === null) this.close();
    else if (!this.isClosed) this.stall = setTimeout(this.abort, limits.analystStallMs);
    return chunk;
  }

  /** What the engine does for us; whoever closed meanwhile, or an error, ends it all behind it. */
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
