import { isOutage } from "../errors.ts";
import type { Telemetry } from "../telemetry.ts";
import type { Json } from "../texts/json.ts";

/** Lines of one sweep. */
const LINES_MAX = 5;

/** What one sweep could not judge: each is left as it is and looked at by the next sweep, and the first few are logged. */
export class Unjudged {
  private lines = 0;

  constructor(
    private readonly telemetry: Pick<Telemetry, "log">,
    private readonly message: string,
  ) {}

  /** Throws an outage: it concerns all that is left to judge. */
  note(error: unknown, fields: Readonly<Record<string, Json>>): void {
    if (isOutage(error)) throw error;
    this.lines += 1;
    if (this.lines <= LINES_MAX) this.telemetry.log("error", this.message, { ...fields, error: String(error) });
  }
}
