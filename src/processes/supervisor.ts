import { type BackOffBounds, backOffMs } from "../domain/back-off.ts";
import { type CallName, callName } from "../domain/calls.ts";
import { sleep } from "../domain/clock.ts";
import type { RuntimePorts } from "../domain/runtime-ports.ts";
import { ChildProcess } from "./child-process.ts";

export interface SupervisorOptions extends RuntimePorts {
  /** The children's names, like `api-1`. */
  readonly names: readonly string[];
  /** Returns the command line of a child. */
  command(name: string): readonly string[];
  /**
   * Starts the work of a newly started child, with everything that it may request from this process. Rejects if that
   * fails.
   */
  begin(child: ChildProcess, name: string): Promise<void>;
  /** Called when a working child is certainly gone, and will be replaced. */
  onLost(name: string): void;
}

/** Requests a child to finish its work in flight and to end; it still accepts calls for the given number of ms. */
export const STOP = callName<number, void>("process.stop");

const RESTART: BackOffBounds = { firstMs: 100, maxMs: 10_000 };
/** A child that worked for this long is considered stable: its next end counts as the first again. */
const STABLE_MS = 10_000;

interface Kept {
  readonly name: string;
  child: ChildProcess | null;
  /** Since when (unix ms) it has not worked; null while it works. */
  awaySinceMs: number | null;
}

/**
 * Keeps child processes running.
 *
 * Invariants:
 * S1. A child that ends is replaced, ever more slowly while its successors end early.
 * S2. After `stop` none is started.
 * S3. `away` names every child that does not work: from its end until its successor reports that it is ready.
 */
export class Supervisor {
  private readonly kept: readonly Kept[];
  private readonly stopping = new AbortController();

  constructor(private readonly options: SupervisorOptions) {
    const nowMs = options.clock.nowMs();
    this.kept = options.names.map((name) => ({ name, child: null, awaySinceMs: nowMs }));
  }

  /** Starts the processes, which then wait for `begin`: loading the program takes a while. */
  start(): void {
    for (const kept of this.kept) kept.child = new ChildProcess(this.options.command(kept.name));
  }

  /** Resolves when all children work, and replaces them from then on. Rejects when one does not begin. */
  async begin(): Promise<void> {
    await Promise.all(this.kept.map((kept) => this.beginOne(kept)));
    for (const kept of this.kept) void this.keep(kept);
  }

  /** Returns the children that do not work, and since when. */
  away(): readonly { readonly name: string; readonly sinceMs: number }[] {
    return this.kept.flatMap(({ name, awaySinceMs }) => (awaySinceMs === null ? [] : [{ name, sinceMs: awaySinceMs }]));
  }

  pids(): ReadonlyMap<string, number> {
    return new Map(this.kept.map(({ name, child }) => [name, child?.pid ?? 0]));
  }

  /** Returns the answers of the working children that answer in time. */
  async askAll<Argument, Result>(
    call: CallName<Argument, Result>,
    argument: Argument,
    withinMs: number,
  ): Promise<ReadonlyMap<string, Awaited<Result>>> {
    const answers = await Promise.all(
      this.kept.map(async ({ name, child, awaySinceMs }) => {
        if (child === null || awaySinceMs !== null) return [];
        try {
          return [[name, await child.calls.call(call, argument, AbortSignal.timeout(withinMs))] as const];
        } catch {
          // Gone, or too busy; the caller does without the answer.
          return [];
        }
      }),
    );
    return new Map(answers.flat());
  }

  /** Calls all working children but one, without waiting for them. */
  tellOthers<Argument>(but: string, call: CallName<Argument, void>, argument: Argument): void {
    for (const { name, child, awaySinceMs } of this.kept) {
      if (name === but || awaySinceMs !== null) continue;
      child?.calls.call(call, argument).catch(() => undefined);
    }
  }

  /** Has every child finish its work in flight, and waits until all have ended. Safe to repeat. */
  async stop(graceMs: number): Promise<void> {
    this.stopping.abort();
    await Promise.all(
      this.kept.map(async ({ child, awaySinceMs }) => {
        if (child === null) return;
        if (awaySinceMs === null) child.calls.call(STOP, graceMs).catch(() => undefined);
        else child.kill();
        await child.exited;
      }),
    );
  }

  /** Kills the children that did not stop. */
  end(): void {
    this.stopping.abort();
    for (const { child } of this.kept) if (child?.calls.gone.aborted === false) child.kill();
  }

  /** Returns its process id. */
  private async beginOne(kept: Kept): Promise<number> {
    const child = kept.child ?? new ChildProcess(this.options.command(kept.name));
    kept.child = child;
    const ended = child.exited.then((end) => {
      throw new Error(`the process ${kept.name} ended before it was ready (${end})`);
    });
    ended.catch(() => undefined);
    try {
      await Promise.race([this.options.begin(child, kept.name), ended]);
    } catch (error) {
      child.kill();
      await child.exited;
      kept.child = null;
      throw error;
    }
    kept.awaySinceMs = null;
    this.options.telemetry.gauge("child_up", 1, { process: kept.name });
    return child.pid;
  }

  private async keep(kept: Kept): Promise<void> {
    const { clock, telemetry, onLost } = this.options;
    const { name } = kept;
    for (let failures = 0; !this.stopping.signal.aborted; ) {
      if (kept.child === null) return;
      const begunMs = clock.monotonicMs();
      const [end, isHung] = await Promise.all([kept.child.exited, kept.child.endWhenHung(clock)]);
      if (this.stopping.signal.aborted) return;
      const lived = clock.monotonicMs() - begunMs >= STABLE_MS;
      kept.awaySinceMs = clock.nowMs();
      telemetry.count("child_exits", { process: name });
      telemetry.gauge("child_up", 0, { process: name });
      onLost(name);
      failures = await this.replace(kept, {
        failures: lived ? 1 : failures + 1,
        why: isHung ? "it hung" : String(end),
      });
    }
  }

  /** Returns the number of tries. */
  private async replace(kept: Kept, { failures, why }: { readonly failures: number; readonly why: string }) {
    const { clock, random, telemetry } = this.options;
    const { signal } = this.stopping;
    telemetry.log("error", "a process ended and is started again", { child: kept.name, why, failures });
    for (let tries = failures; ; tries += 1) {
      await sleep(clock, backOffMs(RESTART, tries - 1, random), signal);
      if (signal.aborted) return tries;
      kept.child = null;
      try {
        const pid = await this.beginOne(kept);
        telemetry.log("info", "a process works again", { child: kept.name, pid });
        return tries;
      } catch (error) {
        if (signal.aborted) return tries;
        telemetry.log("error", "a process does not start", { child: kept.name, error: String(error) });
      }
    }
  }
}
