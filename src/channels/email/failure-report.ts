import { recipientKey } from "../../domain/channels/email.ts";
import { judgeRefusal } from "../../domain/channels/mail-refusals.ts";
import type { DeliveryReport } from "../../domain/jobs/report.ts";
import { recipientDomain } from "../../domain/tenants/recipient-index.ts";
import type { JsonObject } from "../../domain/texts/json.ts";

/** Why a message could not be delivered, according to an MTA's log or a delivery status notification. */
export interface Failure {
  /** Status code of RFC 3463, for example `5.1.1`; null if unknown. */
  readonly enhancedCode: string | null;
  /** The reply of the destination, or of the MTA itself if it did not get that far. */
  readonly text: string;
  /** The command that was answered, for example `RCPT TO`; null if unknown. */
  readonly command: string | null;
}

/** A failure of a message to one address. */
interface DeliveryFailure extends Failure {
  /** The address that the message was sent to. Null if unknown; then no recipient can be suppressed. */
  readonly recipient: string | null;
  /** Reply code of RFC 5321, 4.2; null if there was no reply; absent: the text has it, if any. */
  readonly replyCode?: number | null;
  /** The host that refused it; absent: one of the recipient's domain. */
  readonly provider?: string | null;
  /** The part of the text that tenants may see; by default all of it. */
  readonly shown?: string;
}

/**
 * Returns the event that a failure causes for its job: `bounced`, which suppresses the address, or `failed`, which does
 * not.
 */
export function failureReport(failure: DeliveryFailure): Pick<DeliveryReport, "type" | "result" | "suppressRecipient"> {
  const { recipient, provider = recipient === null ? null : recipientDomain(recipient) } = failure;
  const { isGone, replyCode, enhancedCode } = judgeRefusal({ ...failure, provider });
  const diagnostic = printable(failure.shown ?? failure.text);
  if (!isGone) return { type: "failed", result: { error: diagnostic }, suppressRecipient: null };
  return {
    type: "bounced",
    result: { code: replyCode, enhanced_code: enhancedCode, diagnostic },
    suppressRecipient: recipient === null ? null : recipientKey(recipient),
  };
}

/** A relay's reply that refuses a recipient, or a message to one alone. */
interface RelayRefusal {
  readonly reply: string | null;
  readonly replyCode: number | null;
  readonly command: string | null;
}

/**
 * Returns the result of the event `bounced` if the refusal says that the address does not exist. `shown`: the reply as
 * tenants may read it.
 */
export function bounceBy({ reply, replyCode, command }: RelayRefusal, shown: string): JsonObject | null {
  const refusal = { recipient: null, replyCode, enhancedCode: null, text: reply ?? "", command, shown };
  const { type, result } = failureReport(refusal);
  return type === "bounced" ? result : null;
}

const DIAGNOSTIC_CHARS_MAX = 1_000;

/** Makes foreign text fit for tenants: one line of bounded length. */
export function printable(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, DIAGNOSTIC_CHARS_MAX);
}
