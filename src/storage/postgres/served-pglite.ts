import type { PGlite, Transaction } from "@electric-sql/pglite";
import { type Calls, callName } from "../../domain/calls.ts";

/** A statement from another process. */
export interface ServedStatement {
  /** Null: outside any transaction. */
  readonly transaction: number | null;
  readonly text: string;
  readonly params: readonly unknown[];
  readonly rowMode: "array" | "object";
  /** Types (OIDs) whose values are returned as text. */
  readonly asText: readonly number[];
}

export interface ServedRows {
  readonly rows: readonly unknown[];
  readonly affectedRows: number | undefined;
}

export const STATEMENT = callName<ServedStatement, ServedRows>("registry.statement");
/** Returns the transaction's number once it has begun. */
export const BEGIN = callName<null, number>("registry.begin");
export const END = callName<{ readonly transaction: number; readonly commits: boolean }, void>("registry.end");

/** The longest that a transaction may stay idle, as for a server's sessions: it blocks everyone else. */
export const SILENT_MS_MAX = 9_000;

/**
 * Lets another process use this process's PostgreSQL. Call it once per process.
 *
 * Invariants:
 * S1. A transaction's statements run alone: PGlite has one session, and its own lock blocks all other statements
 *     meanwhile, including this process's.
 * S2. A transaction is rolled back if its process dies or it stays idle for too long.
 */
export function servePglite(client: PGlite, calls: Calls, silentMsMax = SILENT_MS_MAX): void {
  const open = new Map<number, ServedTransaction>();
  let begun = 0;
  calls.gone.addEventListener("abort", () => {
    for (const transaction of open.values()) transaction.giveUp(new Error("its process has ended"));
  });
  const known = (number: number): ServedTransaction => {
    const transaction = open.get(number);
    if (transaction !== undefined) return transaction;
    // The error of a server that has ended a session idle in a transaction.
    throw Object.assign(new Error("there is no such transaction, or none any more"), { code: "25P03" });
  };
  calls.serve(BEGIN, async () => {
    begun += 1;
    const number = begun;
    const transaction = new ServedTransaction(client, silentMsMax, () => open.delete(number));
    open.set(number, transaction);
    await transaction.begun;
    return number;
  });
  calls.serve(STATEMENT, async ({ transaction, ...statement }) => {
    if (transaction !== null) return await known(transaction).run(statement);
    return await runOn(client, statement);
  });
  calls.serve(END, async ({ transaction, commits }) => {
    await (commits ? known(transaction).commit() : known(transaction).rollBack());
  });
}

type Statement = Omit<ServedStatement, "transaction">;

class ServedTransaction {
  /** Resolves once the transaction has the database to itself. */
  readonly begun: Promise<Transaction>;
  private readonly begin = Promise.withResolvers<Transaction>();
  private readonly ending = Promise.withResolvers<void>();
  private readonly over: Promise<void>;
  private timer: Timer | undefined;

  constructor(
    client: PGlite,
    private readonly silentMsMax: number,
    onEnd: () => void,
  ) {
    this.begun = this.begin.promise;
    // Waiting callers get the error, if there are any.
    this.ending.promise.catch(() => {});
    this.over = client
      .transaction(async (transaction) => {
        this.begin.resolve(transaction);
        this.listen();
        await this.ending.promise;
      })
      .finally(() => {
        clearTimeout(this.timer);
        onEnd();
      });
    this.over.catch((error: unknown) => this.begin.reject(error));
  }

  async run(statement: Statement): Promise<ServedRows> {
    const transaction = await this.begun;
    clearTimeout(this.timer);
    try {
      return await runOn(transaction, statement);
    } finally {
      this.listen();
    }
  }

  async commit(): Promise<void> {
    this.ending.resolve();
    await this.over;
  }

  async rollBack(): Promise<void> {
    this.giveUp(new Error("rolled back"));
    await this.over.catch(() => {});
  }

  giveUp(reason: Error): void {
    this.ending.reject(reason);
  }

  /** Starts the idle timeout. */
  private listen(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.giveUp(new Error("it was silent for too long")), this.silentMsMax);
  }
}

async function runOn(
  client: Pick<Transaction, "query">,
  { text, params, rowMode, asText }: Statement,
): Promise<ServedRows> {
  const parsers = Object.fromEntries(asText.map((type) => [type, (value: string) => value]));
  const { rows, affectedRows } = await client.query(text, [...params], { rowMode, parsers });
  return { rows, affectedRows };
}
