import type { Clock } from "../../domain/clock.ts";

/**
 * Lets one loop sleep until a notification arrives. A notification while the loop is awake ends its next sleep at once.
 */
export class Wakeup {
  private hasNews = false;
  private wake: (() => void) | null = null;

  constructor(private readonly clock: Clock) {}

  notify(): void {
    this.hasNews = true;
    this.wake?.();
  }

  /** Resolves on a notification, at the latest after `timeoutMs`. */
  async sleep(timeoutMs: number): Promise<void> {
    if (!this.hasNews) {
      await new Promise<void>((resolve) => {
        const timer = this.clock.setTimer(timeoutMs, resolve);
        this.wake = () => {
          timer.cancel();
          resolve();
        };
      });
      this.wake = null;
    }
    this.hasNews = false;
  }
}
