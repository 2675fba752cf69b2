import { type Clock, sleep } from "../domain/clock.ts";
import { isOutage, UnavailableError } from "../domain/errors.ts";

export interface LookUpsOptions<T> {
  /** Looks names up. A name missing from the answer stands for `missing`. */
  read(names: readonly string[]): Promise<ReadonlyMap<string, PromiseSettledResult<T>>>;
  readonly missing: T;
  /** Called for each name just before its callers get their answer. `isCurrent`: the name was not outdated meanwhile. */
  keep(name: string, value: T, isCurrent: boolean): void;
  /** Most names per call of `read`. */
  readonly batchMax: number;
  /** Most names being looked up or waiting. */
  readonly namesMax: number;
  readonly clock: Clock;
}

interface LookUp<T> {
  readonly answer: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  isCurrent: boolean;
  /** Whether it repeats a read that was outdated while it ran. */
  isRepeat: boolean;
}

/**
 * Collects requested names and looks them up in batches.
 *
 * An in-process database runs its statements on our thread. Looking up ten thousand names one by one would block all other work
 * until they are done; batches with an event loop iteration after each do not.
 *
 * Invariants:
 * U1. One batch is read at a time, and all other waiting work gets its turn before the next one.
 * U2. Every caller is answered by a read that began after the last `outdate` of that name before the call. One that began
 *     earlier than a later `outdate` is repeated once: deliveries after a change was answered follow the change.
 * U3. An outage fails all waiting callers, which would otherwise time out one after the other.
 */
export class LookUps<T> {
  private readonly urgent = new Map<string, LookUp<T>>();
  private readonly waiting = new Map<string, LookUp<T>>();
  private running: ReadonlyMap<string, LookUp<T>> = new Map();
  private isDraining = false;

  constructor(private readonly options: LookUpsOptions<T>) {}

  /** `isUrgent`: ahead of everything that is not urgent. Rejects with `UnavailableError` if too many names wait. */
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

  /** Marks running reads of the name (null: of all names) as possibly outdated. */
  outdate(name: string | null): void {
    for (const [running, lookUp] of this.running) if (name === null || name === running) lookUp.isCurrent = false;
  }

  private begin(): LookUp<T> | null {
    if (this.urgent.size + this.waiting.size + this.running.size >= this.options.namesMax) return null;
    const { promise: answer, resolve, reject } = Promise.withResolvers<T>();
    return { answer, resolve, reject, isCurrent: true, isRepeat: false };
  }

  private async drain(): Promise<void> {
    this.isDraining = true;
    // The first batch includes all names requested in this event loop iteration.
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

  /** Once only: a name that changes all the time must not keep its callers waiting. */
  private repeat(name: string, lookUp: LookUp<T>): boolean {
    const later = this.urgent.get(name) ?? this.waiting.get(name) ?? this.begin();
    if (later === null) return false;
    later.isRepeat = true;
    if (!this.waiting.has(name)) this.urgent.set(name, later);
    later.answer.then(lookUp.resolve, lookUp.reject);
    return true;
  }

  private settle(name: string, lookUp: LookUp<T>, found: PromiseSettledResult<T> | undefined): void {
    if (found?.status === "rejected") return lookUp.reject(found.reason);
    const value = found === undefined ? this.options.missing : found.value;
    this.options.keep(name, value, lookUp.isCurrent);
    if (lookUp.isCurrent || lookUp.isRepeat || !this.repeat(name, lookUp)) lookUp.resolve(value);
  }
}
