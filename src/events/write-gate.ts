/** Lets writes pass, or holds them back while another task needs a quiet event store. */
export class WriteGate {
  private passing = 0;
  private held: Promise<void> | null = null;
  private onEmpty: (() => void) | null = null;

  /** Runs `write` once the gate is open. Rejects if `signal` has aborted by then. */
  async pass<T>(write: () => Promise<T>, signal: AbortSignal): Promise<T> {
    while (this.held !== null) await this.held;
    signal.throwIfAborted();
    this.passing += 1;
    try {
      return await write();
    } finally {
      this.passing -= 1;
      if (this.passing === 0) this.onEmpty?.();
    }
  }

  /** Waits for running writes to end, and holds back new ones while `work` runs. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    while (this.held !== null) await this.held;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.held = promise;
    try {
      if (this.passing > 0) await new Promise<void>((empty) => (this.onEmpty = empty));
      return await work();
    } finally {
      this.onEmpty = null;
      this.held = null;
      resolve();
    }
  }
}
