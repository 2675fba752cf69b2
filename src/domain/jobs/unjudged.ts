import { isOutage } from "../errors.ts";
import type { Telemetry } from "../telemetry.ts";
import type { Json } from "../texts/json.ts";

/** Log lines per sweep. */
const LINES_MAX = 5;

/** Jobs that a sweep could not judge: each is left for the next sweep, and the first few are logged. */
export class Unjudged {
  private lines = 0;

  constructor(
    private readonly telemetry: Pick<Telemetry, "log">,
    private readonly message: string,
  ) {}

  /** Throws if the error is an outage, which concerns all remaining jobs. */
  note(error: unknown, fields: Readonly<Record<string, Json>>): void {
    if (isOutage(error)) throw error;
    this.lines += 1;
    if (this.lines <= LINES_MAX) this.telemetry.log("error", this.message, { ...fields, error: String(error) });
  }
}
