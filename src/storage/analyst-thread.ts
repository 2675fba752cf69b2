import type { Delivery } from "./analyst-access.ts";
import { EngineError } from "./engine-error.ts";
import type { Unavailable } from "./read-statement.ts";

/** A request to a thread. */
export type AnalystWork =
  | {
      readonly kind: "start";
      readonly path: string;
      /** The statements that restrict the session to an analyst's rights. */
      readonly preparation: string;
      readonly sql: string;
      readonly format: string;
      readonly delivery: Delivery;
      readonly unavailable: Unavailable;
    }
  | { readonly kind: "next" }
  | { readonly kind: "close" };

export type AnalystWorkAnswer =
  | AnalystRows
  | { readonly kind: "closed" }
  | { readonly kind: "failed"; readonly code: number; readonly type: string; readonly reason: string };

export interface AnalystRows {
  readonly kind: "rows";
  /** Null at the end. */
  readonly bytes: Uint8Array | null;
  readonly rowsRead: number;
  readonly bytesRead: number;
}

/**
 * A thread of this process that runs one statement at a time (`analyst-worker.ts`). It ends only with the process: when a
 * thread ends, the driver's clean-up closes the connections of all others. An idle thread does not keep the process alive.
 */
export class AnalystThread {
  private readonly worker = new Worker(new URL("./analyst-worker.ts", import.meta.url));
  private waiting: { resolve(answer: AnalystWorkAnswer): void; reject(error: Error): void } | null = null;
  private broken: Error | null = null;

  constructor() {
    this.worker.unref();
    this.worker.onmessage = ({ data }: MessageEvent<AnalystWorkAnswer>) => this.settle()?.resolve(data);
    this.worker.onerror = ({ message }) => {
      this.broken = new Error(`the thread for analysts' statements has ended: ${message}`);
      this.settle()?.reject(this.broken);
    };
  }

  /** Whether it can take further requests. */
  get isUsable(): boolean {
    return this.broken === null;
  }

  /** Rejects with `EngineError` if the engine refuses. Callers wait for each answer before the next request. */
  async rows(work: AnalystWork & { kind: "start" | "next" }): Promise<AnalystRows> {
    const answer = await this.ask(work);
    if (answer.kind === "failed") throw new EngineError(answer.code, answer.type, answer.reason);
    if (answer.kind === "closed") throw new Error("the thread for analysts' statements answers out of turn");
    return answer;
  }

  /** Ends anything still open. Safe to call twice. */
  async close(): Promise<void> {
    if (this.isUsable) await this.ask({ kind: "close" });
  }

  private ask(work: AnalystWork): Promise<AnalystWorkAnswer> {
    if (this.broken !== null) return Promise.reject(this.broken);
    const { promise, resolve, reject } = Promise.withResolvers<AnalystWorkAnswer>();
    this.waiting = { resolve, reject };
    this.worker.ref();
    this.worker.postMessage(work);
    return promise;
  }

  private settle() {
    const { waiting } = this;
    this.waiting = null;
    this.worker.unref();
    return waiting;
  }
}
