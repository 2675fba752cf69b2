import { type Clock, sleep } from "../domain/clock.ts";
import { isOutage } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { DeliveryRepository, Note } from "./delivery-repository.ts";
import { webhookLimits } from "./limits.ts";

export interface NotesPorts {
  readonly store: Pick<DeliveryRepository, "note">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Notes of one transaction. */
const TOGETHER_MAX = 100;

interface Waiting {
  readonly note: Note;
  resolve(isNoted: boolean): void;
}

/** Writes down what calls came to. What arrives during a write is written by the next one, together. */
export class Notes {
  private readonly waiting: Waiting[] = [];
  private readonly stopping = new AbortController();
  private isWriting = false;

  constructor(private readonly ports: NotesPorts) {}

  /**
   * Resolves to whether the note still was about the webhook as it is, once it is on disk; an outage is waited out. A process that
   * dies before has its successor make the same calls again.
   */
  write(note: Note): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push({ note, resolve });
    if (!this.isWriting) void this.writeAll();
    return promise;
  }

  /** Gives up what is not written. */
  stop(): void {
    this.stopping.abort();
  }

  private async writeAll(): Promise<void> {
    this.isWriting = true;
    while (this.waiting.length > 0) await this.writeSome(this.waiting.splice(0, TOGETHER_MAX));
    this.isWriting = false;
  }

  private async writeSome(some: readonly Waiting[]): Promise<void> {
    const { store, clock, telemetry } = this.ports;
    while (!this.stopping.signal.aborted) {
      try {
        const noted = await store.note(some.map(({ note }) => note));
        for (const { note, resolve } of some) resolve(noted.has(note.webhookId));
        return;
      } catch (error) {
        const isAway = isOutage(error);
        telemetry.log(isAway ? "warn" : "error", "what webhooks were told could not be written down", {
          webhooks: some.length,
          error: String(error),
        });
        if (!isAway && some.length > 1) {
          // One that cannot be written holds up no other.
          for (const one of some) await this.writeSome([one]);
          return;
        }
        if (!isAway) break;
        await sleep(clock, webhookLimits.outageMs, this.stopping.signal);
      }
    }
    for (const { resolve } of some) resolve(false);
  }
}
