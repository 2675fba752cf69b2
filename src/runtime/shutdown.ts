import { assert } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Telemetry } from "../domain/telemetry.ts";

/**
 * The order in which the app is shut down, and how long each stage may take (ms). All parts of a stage stop at the same time. A
 * part that does not stop in time loses no important data: that is on disk.
 */
const STAGES = { work: limits.drainMs + 200, providers: 200, history: 800, clients: 200, stores: 400, folder: 100 };
export type Stage = keyof typeof STAGES;

assert(
  Object.values(STAGES).reduce((sum, ms) => sum + ms, 0) < 10_000,
  "the whole house stops within the ten seconds that are promised",
);

interface Part {
  start(): void;
  stop(): Promise<void>;
}

/** Remembers how to stop everything that was started, and does so once, stage by stage. */
export class Shutdown {
  private readonly steps: { readonly stage: Stage; readonly name: string; readonly stop: () => unknown }[] = [];
  private done: Promise<void> | null = null;
  /** How long requests are still taken after the stop was announced. */
  graceMs = 0;

  constructor(private readonly telemetry: Telemetry) {}

  add(stage: Stage, name: string, stop: () => unknown): void {
    this.steps.push({ stage, name, stop });
  }

  /** Starts a part that works by itself, and registers its stop. */
  start<T extends Part>(stage: Stage, name: string, part: T): T {
    part.start();
    this.add(stage, name, () => part.stop());
    return part;
  }

  /** Awaits a store that is being opened, and registers its closing. */
  async keep<T extends { close(): Promise<void> }>(name: string, opening: Promise<T>): Promise<T> {
    const opened = await opening;
    this.add("stores", name, () => opened.close());
    return opened;
  }

  /** Never rejects: a part that fails to stop does not keep the others from stopping. */
  run(graceMs: number): Promise<void> {
    if (this.done === null) this.graceMs = graceMs;
    this.done ??= this.stopAll();
    return this.done;
  }

  private async stopAll(): Promise<void> {
    const startedAtMs = performance.now();
    let dueMs = 0;
    for (const [stage, ms] of Object.entries(STAGES)) {
      dueMs += ms;
      // An insert into the event store may take seconds, so it gets the time left over by the earlier stages.
      const msMax = stage === "history" ? Math.max(ms, startedAtMs + dueMs - performance.now()) : ms;
      const steps = this.steps.filter((step) => step.stage === stage);
      await Promise.all(steps.map((step) => this.stop(step, msMax)));
    }
  }

  private async stop(
    { name, stop }: { readonly name: string; readonly stop: () => unknown },
    msMax: number,
  ): Promise<void> {
    const startedAtMs = performance.now();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.telemetry.log("warn", "a part did not stop in time", { part: name });
      resolve();
    }, msMax);
    try {
      await Promise.race([stop(), late]);
    } catch (error) {
      this.telemetry.log("error", "a part did not stop well", { part: name, error: String(error) });
    }
    clearTimeout(timer);
    this.telemetry.log("debug", "stopped", { part: name, ms: Math.round(performance.now() - startedAtMs) });
  }
}
