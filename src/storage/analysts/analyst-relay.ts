import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import type { ClickHouseAddress } from "../../domain/jobs/event-store.ts";
import { EngineError } from "../clickhouse/engine-error.ts";
import { analystLimits } from "../limits.ts";
import { isCallable } from "./read-names.ts";
import { checkRewritten, type ReadStatement, type Unavailable } from "./read-statement.ts";
import { sqlString } from "./statement-tokens.ts";

export interface AnalystQuery {
  readonly statement: ReadStatement;
  /** Parameters of the URL: settings, values of placeholders, the format and other members of the protocol. */
  readonly members: Readonly<Record<string, string>>;
  /** Whether the client accepts gzip. */
  readonly isGzipped: boolean;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Runs analysts' statements on a server, as a user who can only read, a few at a time.
 *
 * Invariants:
 * A1. A statement leaves no state behind: each is a request without a session.
 * A2. Each statement is checked as it was received, and again as the server itself rewrites it.
 * A3. At most `analystQueriesMax` run at once. `analystQueriesWaitingMax` wait, each for up to `analystWaitMs`. The
 *     server ends a statement whose client is gone, or reads none of its result for `analystStallMs`.
 */
export class AnalystRelay {
  private readonly waiting: ((go: boolean) => void)[] = [];
  private readonly stopping = new AbortController();
  private turns: number = analystLimits.analystQueriesMax;

  private constructor(
    private readonly server: ClickHouseAddress,
    readonly unavailable: Unavailable,
  ) {}

  static async open(server: ClickHouseAddress): Promise<AnalystRelay> {
    const all = await fetchRows(server, "SELECT lower(name) FROM system.functions FORMAT TSV");
    const functions = all.trim().split("\n");
    return new AnalystRelay(server, new Set(functions.filter((name) => !isCallable(name))));
  }

  /**
   * Returns the server's answer, or rejects with `EngineError`. The turn lasts until its last byte is read or the
   * client is gone.
   */
  async run({ statement, members, isGzipped, signal }: AnalystQuery): Promise<Response> {
    await this.turn(signal);
    const giveTurn = once(() => this.giveTurn());
    const over = AbortSignal.any([signal, this.stopping.signal]);
    try {
      checkRewritten(await this.rewritten(statement.sql, over), this.unavailable);
      const answer = await ask(this.server, statement.sql, { members, isGzipped, signal: over });
      const headers = new Headers();
      for (const [name, value] of Object.entries(answer.headers)) {
        if (typeof value === "string" && !OF_THE_CONNECTION.has(name)) headers.set(name, value);
      }
      return new Response(passedOn(answer, giveTurn), { headers });
    } catch (error) {
      giveTurn();
      throw this.stopping.signal.aborted ? STOPPING : error;
    }
  }

  /** Ends the running statements. Safe to call twice. */
  stop(): void {
    this.stopping.abort();
    for (const refuse of this.waiting.splice(0)) refuse(false);
  }

  /** Returns the statement as the server rewrites it. */
  private async rewritten(sql: string, signal: AbortSignal): Promise<string> {
    try {
      return await fetchRows(this.server, `SELECT formatQuerySingleLine(${sqlString(sql)}) FORMAT RawBLOB`, signal);
    } catch (error) {
      const { code, type, reason } = EngineError.from(error);
      // Removes our own wrapping of the statement, which is irrelevant to the analyst.
      throw new EngineError(code, type, reason.replace(/: (In scope|while executing) [^]*$/i, ""));
    }
  }

  private async turn(signal: AbortSignal): Promise<void> {
    if (this.stopping.signal.aborted) throw STOPPING;
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
    if (!isOurs) throw this.stopping.signal.aborted ? STOPPING : BUSY;
  }

  private giveTurn(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.turns += 1;
    else next(true);
  }
}

const BUSY = new EngineError(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many simultaneous queries: try again soon");
const STOPPING = new EngineError(236, "ABORTED", "The server is shutting down");

/** Response headers about the connection to the server. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "date",
]);

interface Asked {
  readonly members?: Readonly<Record<string, string>>;
  readonly isGzipped?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Returns the answer of a statement once it has begun to return rows. Rejects with `EngineError` if it fails at once.
 */
async function ask(
  { url, user, password }: ClickHouseAddress,
  sql: string,
  { members = {}, isGzipped = false, signal }: Asked,
): Promise<IncomingMessage> {
  const headers = {
    "x-clickhouse-user": user,
    "x-clickhouse-key": password,
    ...(isGzipped ? { "accept-encoding": "gzip" } : {}),
    // A connection that stays open would delay the server's end.
    connection: "close",
  };
  const to = `${url}/?${new URLSearchParams(members).toString()}`;
  // Not by `fetch`, which drops the last bytes when the server breaks off.
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asking = request(to, { method: "POST", headers, ...(signal !== undefined && { signal }) }, resolve);
    asking.on("error", reject);
    asking.end(sql);
  });
  if (answer.statusCode === 200) return answer;
  throw EngineError.from(new Error(await text(answer)));
}

async function fetchRows(server: ClickHouseAddress, sql: string, signal?: AbortSignal): Promise<string> {
  return await text(await ask(server, sql, signal === undefined ? {} : { signal }));
}

/**
 * Forwards the answer at the client's pace. `onEnd`: it is complete, or the client is gone. A server that fails midway
 * appends its error to the rows and then breaks off: the error ends the answer. If the server breaks off without an
 * error, so does the answer.
 */
function passedOn(answer: IncomingMessage, onEnd: () => void): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Buffer> = answer[Symbol.asyncIterator]();
  let last = "";
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await chunks.next();
          if (next.done !== true) {
            last = (last + next.value.subarray(-EXCEPTION_CHARS).toString("latin1")).slice(-EXCEPTION_CHARS);
            return controller.enqueue(next.value);
          }
          controller.close();
        } catch (error) {
          if (last.endsWith(EXCEPTION_END)) controller.close();
          else controller.error(error);
        }
        onEnd();
      },
      cancel() {
        onEnd();
        answer.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** The last line of what a server appends to rows already sent (ClickHouse, `WriteBufferFromHTTPServerResponse`). */
const EXCEPTION_END = "__exception__\r\n";
const EXCEPTION_CHARS = EXCEPTION_END.length;

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (hasRun) return;
    hasRun = true;
    run();
  };
}
