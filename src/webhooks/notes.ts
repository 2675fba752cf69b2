import { type Clock, sleep } from "../domain/clock.ts";
import { isOutage } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { logFailure } from "../domain/telemetry.ts";
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

/** Stores the results of calls. Notes that arrive during a write share the next one. */
export class Notes {
  private readonly waiting: Waiting[] = [];
  private readonly stopping = new AbortController();
  private isWriting = false;

  constructor(private readonly ports: NotesPorts) {}

  /**
   * Resolves once the note is on disk, to whether it still matched the webhook; outages are waited out. If the process dies
   * before that, its successor repeats the calls.
   */
  write(note: Note): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push({ note, resolve });
    if (!this.isWriting) void this.writeAll();
    return promise;
  }

  /** Discards notes that are not written. */
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
        const fields = { webhooks: some.length };
        logFailure(telemetry, "what webhooks were told could not be written down", error, fields);
        if (!isAway && some.length > 1) {
          // A note that cannot be written does not block the others.
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
