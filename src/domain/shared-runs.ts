interface Run<T> {
  /** Resolves whether the run succeeds or fails. */
  readonly ended: Promise<void>;
  /** The run that callers share who arrived during this one. */
  next: Promise<T> | null;
}

/**
 * Runs the work of a key at most once at a time. Callers that arrive during a run share the next one, which begins when
 * this one has ended: so each caller's run begins after its call, and reads everything that had happened by then.
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
