import type { Clock } from "../domain/clock.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { Json } from "../domain/texts/json.ts";

const WINDOW_MS = 1_000;
const LINES_MAX = 5;

/**
 * Logs requests that fail because a store is unavailable: a few each second, however many fail. The next line counts the
 * omitted ones as `more`.
 */
export class OutageLog {
  private windowEndsMs = 0;
  private lines = 0;
  private more = 0;

  constructor(
    private readonly telemetry: Pick<Telemetry, "log">,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  note(message: string, fields: Readonly<Record<string, Json>>): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs >= this.windowEndsMs) {
      this.windowEndsMs = nowMs + WINDOW_MS;
      this.lines = 0;
    }
    if (this.lines >= LINES_MAX) {
      this.more += 1;
      return;
    }
    this.lines += 1;
    this.telemetry.log("error", message, this.more > 0 ? { ...fields, more: this.more } : fields);
    this.more = 0;
  }
}
