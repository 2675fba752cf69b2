const STEP_MS = 100;

/** Measures how late the event loop is: every long piece of work delays everything else in the process. */
export class LoopDelay {
  private timer: Timer | null = null;
  private dueMs = 0;
  private longestMs = 0;

  start(): void {
    this.dueMs = performance.now() + STEP_MS;
    this.timer ??= setInterval(() => this.step(), STEP_MS);
    this.timer.unref();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  /** Returns the longest delay since the last call, in milliseconds. */
  take(): number {
    const longest = Math.max(this.longestMs, performance.now() - this.dueMs);
    this.longestMs = 0;
    return Math.max(0, longest);
  }

  private step(): void {
    const nowMs = performance.now();
    this.longestMs = Math.max(this.longestMs, nowMs - this.dueMs);
    this.dueMs = nowMs + STEP_MS;
  }
}
