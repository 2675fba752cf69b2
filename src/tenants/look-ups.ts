import { type Clock, sleep } from "../domain/clock.ts";
import { isOutage, UnavailableError } from "../domain/errors.ts";

export interface LookUpsOptions<T> {
  /** What the names stand for. A name that is missing in the answer stands for `missing`. */
  read(names: readonly string[]): Promise<ReadonlyMap<string, PromiseSettledResult<T>>>;
  readonly missing: T;
  /** Called for each name just before those who asked get their answer. `isCurrent`: nothing outdated it meanwhile. */
  keep(name: string, value: T, isCurrent: boolean): void;
  /** Names in one call of `read`. */
  readonly batchMax: number;
  /** Names that are being looked up or wait for it. */
  readonly namesMax: number;
  readonly clock: Clock;
}

interface LookUp<T> {
  readonly answer: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  isCurrent: boolean;
}

/**
 * Collects the names that are asked for and looks them up in batches.
 *
 * A database in this process runs its statements on our thread. Ten thousand names looked up one by one would hold up all
 * else for as long as they take; a batch at a time, with a turn of the event loop behind each, they do not.
 *
 * Invariants:
 * U1. One batch is read at a time, and everything else that waits gets its turn before the next one.
 * U2. Whoever asks is answered by a read that began after the last `outdate` of that name.
 * U3. An outage fails all who wait: each of them would only find out the same, one timeout after the other.
 */
export class LookUps<T> {
  private readonly urgent = new Map<string, LookUp<T>>();
  private readonly waiting = new Map<string, LookUp<T>>();
  private running: ReadonlyMap<string, LookUp<T>> = new Map();
  private isDraining = false;

  constructor(private readonly options: LookUpsOptions<T>) {}

  /** `isUrgent`: before all that is not. Rejects with `UnavailableError` where too many names wait. */
  ask(name: string, isUrgent = false): Promise<T> {
    const running = this.running.get(name);
    if (running?.isCurrent) return running.answer;
    const waiting = this.urgent.get(name) ?? this.waiting.get(name) ?? this.begin();
    if (waiting === null) return Promise.reject(new UnavailableError("too many look-ups are waiting"));
    if (isUrgent) this.waiting.delete(name);
    if (isUrgent || !this.urgent.has(name)) (isUrgent ? this.urgent : this.waiting).set(name, waiting);
    if (!this.isDraining) void this.drain();
    return waiting.answer;
  }

  /** What is being read about the name (null: about any) may be out of date. */
  outdate(name: string | null): void {
    for (const [running, lookUp] of this.running) if (name === null || name === running) lookUp.isCurrent = false;
  }

  private begin(): LookUp<T> | null {
    if (this.urgent.size + this.waiting.size + this.running.size >= this.options.namesMax) return null;
    const { promise: answer, resolve, reject } = Promise.withResolvers<T>();
    return { answer, resolve, reject, isCurrent: true };
  }

  private async drain(): Promise<void> {
    this.isDraining = true;
    // All who ask in this turn are in the first batch.
    await Promise.resolve();
    while (this.urgent.size + this.waiting.size > 0) {
      await this.readBatch();
      await sleep(this.options.clock, 0);
    }
    this.isDraining = false;
  }

  private async readBatch(): Promise<void> {
    const batch = this.take();
    this.running = batch;
    try {
      const found = await this.options.read([...batch.keys()]);
      for (const [name, lookUp] of batch) this.settle(name, lookUp, found.get(name));
    } catch (error) {
      const failed = isOutage(error) ? [batch, this.urgent, this.waiting] : [batch];
      for (const lookUps of failed) for (const { reject } of lookUps.values()) reject(error);
      if (isOutage(error)) this.urgent.clear();
      if (isOutage(error)) this.waiting.clear();
    }
    this.running = new Map();
  }

  private take(): ReadonlyMap<string, LookUp<T>> {
    const batch = new Map<string, LookUp<T>>();
    for (const from of [this.urgent, this.waiting]) {
      for (const [name, lookUp] of from) {
        if (batch.size === this.options.batchMax) return batch;
        from.delete(name);
        batch.set(name, lookUp);
      }
    }
    return batch;
  }

  private settle(name: string, lookUp: LookUp<T>, found: PromiseSettledResult<T> | undefined): void {
    if (found?.status === "rejected") return lookUp.reject(found.reason);
    const value = found === undefined ? this.options.missing : found.value;
    this.options.keep(name, value, lookUp.isCurrent);
    lookUp.resolve(value);
  }
}
