import { type BackOffBounds, longestBackOffMs } from "../domain/back-off.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { ServerProcess } from "./server-process.ts";

export interface KeptServerOptions {
  /** As in "redis-server". */
  readonly name: string;
  /** The metric that counts the times that it ended by itself. */
  readonly exits: string;
  /** Starts in a row that may fail before it is given up. */
  readonly startsMax: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Whether the disk has enough space for its writes. Otherwise it is not started again until there is. */
  hasRoom(): boolean;
  /** Before each start. */
  prepare(): Promise<void>;
  /** Starts a process. */
  make(): ServerProcess;
  /** Called after a start that failed: whether something was repaired, so that another may succeed. */
  repair?(): Promise<boolean>;
  /** Called when it is given up. */
  onGone?(lastWords: string): void;
}

const RESTART: BackOffBounds = { firstMs: 100, maxMs: 5_000 };
/** A server that has run this long is considered stable: its next exit counts as the first. */
const STABLE_MS = 10_000;
const ROOM_LOOK_MS = 2_000;

/** A private server that is started again whenever it ends, until `stop`. */
export class KeptServer {
  private readonly stopping = new AbortController();
  private process: ServerProcess | null = null;
  private watching: Promise<void> | null = null;

  constructor(private readonly options: KeptServerOptions) {}

  /** The process id of the current process. */
  get pid(): number {
    return this.process?.pid ?? 0;
  }

  /** Resolves once it answers; rejects if it does not start. */
  async start(): Promise<void> {
    this.tellRoom(true);
    this.watching = this.watch(await this.run());
  }

  /** Safe to call twice. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.process?.stop();
    await this.watching;
  }

  /** Returns the latest log lines of its latest process, oldest first. */
  lastWords(): string {
    return this.process?.lastWords() ?? "";
  }

  private async watch(first: ServerProcess): Promise<void> {
    const { name, exits, startsMax, clock, telemetry, onGone } = this.options;
    let failures = 0;
    let current: ServerProcess | null = first;
    while (!this.stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      await current?.exited;
      if (this.stopping.signal.aborted) return;
      failures = current !== null && clock.monotonicMs() - startedMs >= STABLE_MS ? 1 : failures + 1;
      const lastWords = this.lastWords();
      telemetry.count(exits);
      telemetry.log("error", `${name} ended and is started again`, {
        failures,
        end: this.process?.end ?? null,
        lastWords,
      });
      // An end for lack of disk space does not show whether it can be kept running.
      if (await this.waitedForRoom()) failures = 1;
      if (failures > startsMax) {
        onGone?.(lastWords);
        return;
      }
      await sleep(clock, longestBackOffMs(RESTART, failures - 1), this.stopping.signal);
      current = await this.run().catch((error: unknown) => {
        if (this.stopping.signal.aborted) return null;
        telemetry.log("error", `${name} does not start`, { error: String(error) });
        return null;
      });
    }
  }

  /** Waits while the disk is full. */
  private async waitedForRoom(): Promise<boolean> {
    const { name, hasRoom, clock, telemetry } = this.options;
    if (hasRoom()) return false;
    this.tellRoom(false);
    telemetry.log("error", `the disk is full: ${name} is started again once there is room`, {});
    while (!this.stopping.signal.aborted && !hasRoom()) await sleep(clock, ROOM_LOOK_MS, this.stopping.signal);
    telemetry.log("info", `the disk has room again: ${name} is started`, {});
    this.tellRoom(true);
    return true;
  }

  private tellRoom(hasRoom: boolean): void {
    const { name, telemetry } = this.options;
    telemetry.gauge("disk_full", hasRoom ? 0 : 1, { server: name });
  }

  private async run(): Promise<ServerProcess> {
    const { name, prepare, repair } = this.options;
    await prepare();
    const process = await this.spawn();
    if (process !== null) return process;
    const isRepaired = !this.stopping.signal.aborted && ((await repair?.()) ?? false);
    const repaired = isRepaired ? await this.spawn() : null;
    if (repaired === null) throw new Error(`${name} does not start`);
    return repaired;
  }

  private async spawn(): Promise<ServerProcess | null> {
    if (this.stopping.signal.aborted) return null;
    const process = this.options.make();
    this.process = process;
    return (await process.ready()) ? process : null;
  }
}
