import { recipientKey } from "../../domain/email.ts";
import type { DeliveryReport } from "../../domain/report.ts";

/** Why a message could not be delivered, according to an MTA's log or a delivery status notification. */
export interface Failure {
  /** Status code of RFC 3463, for example `5.1.1`; null if unknown. */
  readonly enhancedCode: string | null;
  /** The reply of the destination, or of the MTA itself if it did not get that far. */
  readonly text: string;
  /** The command that was answered, for example `RCPT TO`; null if unknown. */
  readonly command: string | null;
}

/**
 * `address`: the address can never be reached, so nothing is sent to it again. `message`: this message failed (the
 * mailbox is full, the sender's reputation, its size, its time in the queue), and the next one may pass.
 */
export type FailureClass = "address" | "message";

/** No status, or one that means only "permanent". */
const NO_STATUS = [null, "5.0.0", "5.5.0"];

interface Rule {
  readonly is: FailureClass;
  /** All given conditions must hold. */
  readonly codes?: readonly (string | null)[];
  readonly text?: RegExp;
  readonly command?: RegExp;
}

/**
 * The first matching rule decides; none: `message`, because a wrong suppression loses mail silently, while a bounce
 * that is taken for a failure shows up again at the next message.
 */
const RULES: readonly Rule[] = [
  // A refusal before the recipient is named concerns the sender or the connection.
  { is: "message", command: /^(?:MAIL FROM|EHLO|HELO|STARTTLS|AUTH)/i },
  // X.1.0 means only "address", and some servers mean the sender's.
  { is: "message", codes: ["5.1.0"], text: /\bsender\b/i },
  // Gmail answers like this for mailboxes that receive mail too fast, which passes.
  { is: "message", codes: ["5.2.1"], text: /\breceiving (?:mail|messages) (?:at a rate|too quickly)/i },
  // RFC 3463, 3.2 (and RFC 7505 for 5.1.10): the recipient's mailbox or system. 5.1.7 and 5.1.8 concern the sender.
  { is: "address", codes: ["5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.6", "5.1.10"] },
  // RFC 3463, 3.3: the mailbox is disabled.
  { is: "address", codes: ["5.2.1"] },
  // Postfix's words for a domain that is not in the DNS; 5.4.4 alone may mean the routing of any server on the way.
  {
    is: "address",
    codes: ["5.4.4"],
    text: /\b(?:host or domain name not found|no such domain|domain does not exist)\b/i,
  },
  // Without a meaningful status only the words can decide.
  { is: "message", codes: NO_STATUS, text: /\b(?:spam|policy|block(?:ed|list)|blacklist|reputation|quota|full)\b/i },
  { is: "address", codes: NO_STATUS, text: /\bno such (?:user|mailbox|recipient|address|person)\b/i },
  {
    is: "address",
    codes: NO_STATUS,
    text: /\b(?:unknown|invalid|no longer valid|unrouteable) (?:user|mailbox|recipient|local[ -]part|address)\b/i,
  },
  {
    is: "address",
    codes: NO_STATUS,
    text: /\b(?:user|mailbox|recipient|address|account)(?: is)? (?:unknown|not found|does(?: not|n't) exist|not exist)\b/i,
  },
];

/** Only `address` failures become `bounced` and suppress; all others are `failed` events. */
export function failureClassOf(failure: Failure): FailureClass {
  return RULES.find((rule) => holds(rule, failure))?.is ?? "message";
}

function holds({ codes, text, command }: Rule, failure: Failure): boolean {
  if (codes !== undefined && !codes.includes(failure.enhancedCode)) return false;
  if (text !== undefined && !text.test(failure.text)) return false;
  return command === undefined || (failure.command !== null && command.test(failure.command));
}

/** A failure of a message to one address. */
interface DeliveryFailure extends Failure {
  /** As the message was addressed. Null if unknown; then no recipient can be suppressed. */
  readonly recipient: string | null;
  /** Reply code of RFC 5321, 4.2; null if there was no reply. */
  readonly replyCode: number | null;
}

/**
 * The event that a failure causes for its job: `bounced`, which suppresses the address, or `failed`, which does not.
 */
export function failureReport(failure: DeliveryFailure): Pick<DeliveryReport, "type" | "result" | "suppressRecipient"> {
  const { recipient, replyCode, enhancedCode } = failure;
  const diagnostic = printable(failure.text);
  if (failureClassOf(failure) === "message")
    return { type: "failed", result: { error: diagnostic }, suppressRecipient: null };
  return {
    type: "bounced",
    result: { code: replyCode, enhanced_code: enhancedCode, diagnostic },
    suppressRecipient: recipient === null ? null : recipientKey(recipient),
  };
}

const DIAGNOSTIC_CHARS_MAX = 1_000;

/** Makes foreign text fit to show to tenants: on one line, with a bounded length. */
export function printable(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, DIAGNOSTIC_CHARS_MAX);
}
