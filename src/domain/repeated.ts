import { type Clock, sleep } from "./clock.ts";

/** Work that is repeated from `start` until `stop`, with a pause after each round. The work handles its own errors. */
export class Repeated {
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;

  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly clock: Clock,
    private readonly pauseMs: () => number,
  ) {}

  get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }

  /** Begins the first round at once. Safe to repeat. */
  start(): void {
    this.running ??= this.run();
  }

  /** Begins the first round after a pause. Safe to repeat. */
  startLater(): void {
    this.running ??= this.pause().then(() => this.run());
  }

  /** Waits for the round in progress, and starts no further one. Safe to repeat. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.work();
      await this.pause();
    }
  }

  private pause(): Promise<void> {
    return sleep(this.clock, this.pauseMs(), this.stopping.signal);
  }
}
