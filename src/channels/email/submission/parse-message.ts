import type { Email } from "postal-mime";
import { FairTurns } from "../../../domain/fair-turns.ts";
import { BoundedMime } from "./bounded-mime.ts";
import { submissionLimits } from "./limits.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

/**
 * Parses messages (RFC 5322, MIME), one at a time and in turns with other work, with bounds on what a hostile one may cost: the
 * parser keeps an object for each line and each part. Tenants take turns: no message waits for all that another tenant sends.
 */
export class MessageParser {
  private readonly turns = new FairTurns({ all: 1, each: 1 });

  /** Rejects with an `SmtpRefusal`. */
  parse(tenantId: string, message: Uint8Array): Promise<Email> {
    return this.turns.inTurn(tenantId, () => parseBounded(message));
  }
}

async function parseBounded(message: Uint8Array): Promise<Email> {
  refuseCostly(message);
  try {
    return await new BoundedMime().parse(message);
  } catch (error) {
    if (error instanceof SmtpRefusal) throw error;
    // Its bounds are plain errors, and it has no others for a message.
    throw new SmtpRefusal(554, `5.6.0 the message could not be read: ${error instanceof Error ? error.message : ""}`);
  }
}

const [NEWLINE, DASH] = [0x0a, 0x2d];

function refuseCostly(message: Uint8Array): void {
  let lines = 0;
  let dashed = 0;
  for (let at = message.indexOf(NEWLINE); at !== -1; at = message.indexOf(NEWLINE, at + 1)) {
    lines += 1;
    if (message[at + 1] === DASH && message[at + 2] === DASH) dashed += 1;
  }
  if (lines > submissionLimits.linesMax || dashed > submissionLimits.dashedLinesMax) {
    throw new SmtpRefusal(554, "5.6.0 the message has more lines or parts than are taken");
  }
}
