import type { PGlite, QueryOptions } from "@electric-sql/pglite";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import type { Calls } from "../../domain/calls.ts";
import { BEGIN, END, STATEMENT } from "./served-pglite.ts";

/** Opens the PostgreSQL inside another process of this start, served there by `servePglite`. */
export function openRemotePglite(calls: Calls): {
  readonly db: PgDatabase<PgQueryResultHKT>;
  close(): Promise<void>;
} {
  const client = new RemotePglite(calls);
  return {
    // Drizzle's driver calls only these two methods.
    db: drizzle({ client: client as unknown as PGlite }),
    close: () => Promise.resolve(),
  };
}

interface Queries {
  query(text: string, params?: readonly unknown[], options?: QueryOptions): Promise<unknown>;
}

class RemotePglite implements Queries {
  constructor(private readonly calls: Calls) {}

  query(text: string, params?: readonly unknown[], options?: QueryOptions): Promise<unknown> {
    return run(this.calls, null, { text, params, options });
  }

  async transaction<T>(work: (transaction: Queries) => Promise<T>): Promise<T> {
    const transaction = await this.calls.call(BEGIN, null);
    let result: T;
    try {
      result = await work({
        query: (text, params, options) => run(this.calls, transaction, { text, params, options }),
      });
    } catch (error) {
      // If this fails as well, the other side rolls the transaction back by itself.
      await this.calls.call(END, { transaction, commits: false }).catch(() => {});
      throw error;
    }
    await this.calls.call(END, { transaction, commits: true });
    return result;
  }
}

interface Query {
  readonly text: string;
  readonly params: readonly unknown[] | undefined;
  readonly options: QueryOptions | undefined;
}

function run(calls: Calls, transaction: number | null, { text, params = [], options }: Query): Promise<unknown> {
  // Functions cannot be sent to another process, but drizzle's parsers only return the text unchanged.
  const asText = Object.keys(options?.parsers ?? {}).map(Number);
  return calls.call(STATEMENT, { transaction, text, params, rowMode: options?.rowMode ?? "object", asText });
}
