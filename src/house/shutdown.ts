import type { Telemetry } from "../core/telemetry.ts";

/** In which order the house is taken down; what is of one stage stops at the same time. */
const STAGES = ["work", "providers", "history", "clients", "stores", "folder"] as const;
export type Stage = (typeof STAGES)[number];

/** Remembers how to stop what was started, and does it once, stage by stage. */
export class Shutdown {
  private readonly steps: { readonly stage: Stage; readonly name: string; readonly stop: () => unknown }[] = [];
  private done: Promise<void> | null = null;

  constructor(private readonly telemetry: Telemetry) {}

  add(stage: Stage, name: string, stop: () => unknown): void {
    this.steps.push({ stage, name, stop });
  }

  /** Waits for a store that is being opened, and remembers to close it. */
  async keep<T extends { close(): Promise<void> }>(name: string, opening: Promise<T>): Promise<T> {
    const opened = await opening;
    this.add("stores", name, () => opened.close());
    return opened;
  }

  /** Never rejects: a part that does not stop well does not keep the others from it. */
  run(): Promise<void> {
    this.done ??= this.stopAll();
    return this.done;
  }

  private async stopAll(): Promise<void> {
    for (const stage of STAGES) {
      await Promise.all(this.steps.filter((step) => step.stage === stage).map((step) => this.stop(step)));
    }
  }

  private async stop({ name, stop }: { readonly name: string; readonly stop: () => unknown }): Promise<void> {
    const startedAtMs = performance.now();
    try {
      await stop();
    } catch (error) {
      this.telemetry.log("error", "a part did not stop well", { part: name, error: String(error) });
    }
    this.telemetry.log("debug", "stopped", { part: name, ms: Math.round(performance.now() - startedAtMs) });
  }
}
