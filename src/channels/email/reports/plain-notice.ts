import type { MimePart } from "./mime-part.ts";

/**
 * A mail system's notice in plain text: from qmail, older versions of Exim and Exchange, and providers with their own
 * programs.
 */
export interface Notice {
  /** The whole text; "" if there is none. */
  readonly words: string;
  /** The part about the recipients. */
  readonly reason: string;
  /** The addresses in the notice. */
  readonly recipients: readonly string[];
  /** False if the message is only delayed, or the notice does not mention its fate. */
  readonly isFailure: boolean;
}

/** Whether a program wrote the message because another one did not arrive. Auto-responders count as persons. */
export function isFromMailSystem(message: MimePart): boolean {
  if (message.field("x-failed-recipients") !== null) return true;
  if (MAIL_SYSTEM.test(message.field("from") ?? "<>")) return true;
  return /^<\s*>$/.test(message.field("return-path") ?? "") && UNDELIVERED.test(message.field("subject") ?? "");
}

const MAIL_SYSTEM =
  /^\s{0,9}<?>?\s{0,9}$|\b(?:mailer-?daemon|post_?master|mail delivery (?:sub)?system|mail delivery service|delivery subsystem|microsoft ?exchange\w*)/i;
const UNDELIVERED =
  /undeliver|returned (?:mail|to sender)|failure notice|delivery (?:status|fail|has failed)|delivery report|non-?delivery|nicht zugestellt|unzustellbar|недостав|non remis|no entregad|mancata consegna/i;

/** Parses the notice at the beginning of a message, up to a bound. */
export function parseNotice(message: MimePart): Notice {
  const lines = ownLines(extractText(message, DEPTH_MAX));
  const subject = message.field("subject") ?? "";
  const named = (message.field("x-failed-recipients") ?? "").split(",", RECIPIENTS_MAX).map((each) => each.trim());
  const all = lines.join("\n").trim();
  const start = lines.findIndex((line) => ADDRESS_LINE.test(line));
  const reason = lines.slice(start).join("\n").trim();
  return {
    words: all,
    // If no text follows the recipient, the reason precedes it.
    reason: start === -1 || !reason.includes("\n") ? all : reason,
    recipients: [...named.filter((each) => each !== ""), ...addressesIn(all)],
    isFailure: !LATE_SUBJECT.test(subject) && !LATE.test(all) && (named[0] !== "" || FAILED.test(`${subject}\n${all}`)),
  };
}

const DEPTH_MAX = 3;
const NOTICE_CHARS_MAX = 32 * 1024;
const LINES_MAX = 200;
const LINE_CHARS_MAX = 1_000;
const RECIPIENTS_MAX = 20;

/** A line that consists of an address and begins the paragraph about it: `<ann@example.com>:`. */
const ADDRESS_LINE = /^\s{0,8}<?[^\s<>@]{1,64}@[^\s<>@]{1,255}>?:?\s{0,8}$/;
const LATE_SUBJECT = /\b(?:delay(?:ed)?|warning|verzögert)\b/i;
const LATE =
  /\b(?:will be retried|attempts will continue|do not need to resend|still being retried|warning message only|has been delayed|not yet been delivered|no action is required)\b/i;

/** A postmaster's program may also thank for a message. */
const FAILED =
  /undeliver|failure|permanent|fatal|returned|(?:not|n't|unable to|failed|error).{0,80}(?:deliver|reach|send|sent)|deliver.{0,80}(?:fail|error|not\b)|(?:user|mailbox|recipient|address)\S{0,3} (?:\S+ )?(?:unknown|not|full|invalid)|недостав|не может|не доставлен|unzustellbar|nicht zugestellt|non remis|no (?:se )?(?:pudo|entreg)|mancata|エラー|届/is;

/** Returns the first text in the message. */
function extractText(part: MimePart, depth: number): string {
  if (part.mediaType === "text/plain") return part.text();
  if (depth === 0) return "";
  const parts = part.parts();
  if (parts.length === 0 && part.mediaType.startsWith("multipart/")) return part.text();
  for (const inner of parts) {
    const text = extractText(inner, depth - 1);
    if (text !== "") return text;
  }
  return "";
}

/** Returns the lines before a copy of the message. */
function ownLines(text: string): readonly string[] {
  const lines = text
    .slice(0, NOTICE_CHARS_MAX)
    .split("\n", LINES_MAX)
    .map((line) => line.slice(0, LINE_CHARS_MAX).trimEnd());
  const copy = lines.findIndex((line) => COPY.test(line));
  return copy === -1 ? lines : lines.slice(0, copy);
}

const COPY =
  /^\s{0,8}-{2,80}.{0,80}(?:copy of|below this line|original message|unsent message|message header|returned message)|^(?:return-path|received|message-id):/i;

function addressesIn(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [address] of text.matchAll(ADDRESS)) {
    if (found.size === RECIPIENTS_MAX) break;
    found.add(address);
  }
  return [...found];
}

const ADDRESS = /(?<![^\s<>(":;,])[^\s<>()":;,@]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,9}/gu;
