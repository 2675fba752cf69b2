import type { SQL } from "bun";

/** Least time between two replacements, so that a merely slow server is not overwhelmed by new connections. */
const REPLACED_EVERY_MS = 5_000;
/** Work on the former connections has ended by then, or was given up. */
const FORMER_CLOSE_SECONDS = 15;
const CLOSE_SECONDS = 5;
/** From the beginning of a new connection to the answer of a first statement. */
const ANSWER_MS = 10_000;

/**
 * Connections to a PostgreSQL server that can be replaced. A connection that a firewall or a fail-over has dropped
 * stays silent for many minutes, and the driver keeps sending calls to it: a caller that misses an answer requests new
 * ones (`replace`).
 */
export class PostgresPool {
  /** The methods that drizzle's driver calls. */
  readonly client: Pick<SQL, "unsafe" | "begin">;
  private replacing: Promise<void> | null = null;
  /** A replaced pool is still closing: a third one beside it would take connections that others need. */
  private isFormerOpen = false;
  private replacedAtMs = Number.NEGATIVE_INFINITY;
  private isClosed = false;

  private constructor(
    private pool: SQL,
    private readonly connect: () => SQL,
  ) {
    this.client = {
      unsafe: (...call) => this.pool.unsafe(...call),
      begin: (...call: Parameters<SQL["begin"]>) => this.pool.begin(...call),
    } as typeof this.client;
  }

  /** Rejects with the driver's error if the server does not answer. */
  static async open(connect: () => SQL): Promise<PostgresPool> {
    return new PostgresPool(await answering(connect()), connect);
  }

  /** Moves to new connections if the server answers on one. Calls in progress on the former ones may be ended. */
  replace(): void {
    if (this.replacing !== null || this.isFormerOpen || this.isClosed) return;
    if (performance.now() - this.replacedAtMs < REPLACED_EVERY_MS) return;
    this.replacing = this.moveToOthers().finally(() => {
      this.replacing = null;
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.replacing;
    await this.pool.close({ timeout: CLOSE_SECONDS });
  }

  private async moveToOthers(): Promise<void> {
    // If the server is silent on new connections, too, it is away, and the former ones are as good.
    const next = await answering(this.connect()).catch(() => null);
    if (next === null) return;
    const former = this.pool;
    this.pool = next;
    this.replacedAtMs = performance.now();
    this.isFormerOpen = true;
    const closed = () => {
      this.isFormerOpen = false;
    };
    void former.close({ timeout: FORMER_CLOSE_SECONDS }).then(closed, closed);
  }
}

async function answering(pool: SQL): Promise<SQL> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(new Error("PostgreSQL did not answer")), ANSWER_MS);
  try {
    await Promise.race([pool`select 1`, deadline.promise]);
    return pool;
  } catch (error) {
    await pool.close({ timeout: 0 }).catch(() => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
