import PostalMime, { type Email } from "postal-mime";
import { FairTurns } from "../../../domain/fair-turns.ts";
import { submissionLimits } from "./limits.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

/**
 * Parses messages (RFC 5322, MIME), one at a time and in turns with other work, with bounds on what a hostile one may cost:
 * the parser keeps an object for each line and each part, and makes text and HTML from one another. Tenants take turns: no
 * message waits for all that another tenant sends.
 */
export class MessageParser {
  private readonly turns = new FairTurns({ all: 1, tenant: 1 });

  /** Rejects with an `SmtpRefusal`. */
  parse(tenantId: string, message: Uint8Array): Promise<Email> {
    return new Promise((resolve, reject) => {
      this.turns.enter(tenantId, () => parseBounded(message).then(resolve, reject));
    });
  }
}

async function parseBounded(message: Uint8Array): Promise<Email> {
  refuseCostly(message);
  const parser = new PostalMime({
    forceRfc822Attachments: true,
    maxNestingDepth: submissionLimits.nestingMax,
    maxHeadersSize: submissionLimits.headerBytesMax,
  });
  watch(parser);
  try {
    return await parser.parse(message);
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

/** How many lines are read in one turn of the event loop. */
const LINES_PER_TURN = 5_000;

interface TextPart {
  readonly value: unknown;
}

/** What the parser has and its types leave out. Its version is pinned, and tests notice if one of these is gone. */
interface ParserInside {
  /** Takes one line. */
  processLine(line: Uint8Array, isFinal: boolean): Promise<void>;
  /** Puts the text parts together, and makes each form from the other where it is missing. */
  renderTextContent(): void;
  readonly textMap: ReadonlyMap<unknown, Readonly<Partial<Record<"plain" | "html", readonly TextPart[]>>>>;
}

function watch(parser: PostalMime): void {
  const inside = parser as unknown as ParserInside;
  const { processLine, renderTextContent } = inside;
  let lines = 0;
  inside.processLine = async (line, isFinal) => {
    lines += 1;
    if (lines % LINES_PER_TURN === 0) await new Promise(setImmediate);
    return processLine.call(parser, line, isFinal);
  };
  inside.renderTextContent = () => {
    if (textChars(inside) > submissionLimits.textCharsMax) {
      throw new SmtpRefusal(554, "5.6.0 the text and the HTML of the message are too large: 512 KB is possible");
    }
    renderTextContent.call(parser);
  };
}

function textChars({ textMap }: ParserInside): number {
  const parts = Array.from(textMap.values(), ({ plain = [], html = [] }) => [...plain, ...html]).flat();
  return parts.reduce((sum, { value }) => sum + (typeof value === "string" ? value.length : 0), 0);
}
