interface Run<T> {
  /** Resolves, whatever became of it. */
  readonly ended: Promise<void>;
  /** Of those who came while it ran. */
  next: Promise<T> | null;
}

/**
 * Runs the work of a key at most once at a time. Whoever comes during a run shares the next one, which begins when it has ended: so
 * each caller's run begins after the call, and sees whatever had happened by then.
 */
export class SharedRuns<T> {
  private readonly runs = new Map<string, Run<T>>();

  run(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.runs.get(key);
    if (running === undefined) return this.begin(key, work);
    running.next ??= running.ended.then(() => this.begin(key, work));
    return running.next;
  }

  private begin(key: string, work: () => Promise<T>): Promise<T> {
    const result = (async () => work())();
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    const run: Run<T> = { ended: ended.then(() => this.forget(key, run)), next: null };
    this.runs.set(key, run);
    return result;
  }

  private forget(key: string, run: Run<T>): void {
    if (run.next === null) this.runs.delete(key);
  }
}
