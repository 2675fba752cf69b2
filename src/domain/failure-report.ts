import { normaliseAddress } from "./email.ts";
import { type Failure, failureClassOf } from "./failure-class.ts";
import type { DeliveryReport } from "./report.ts";

/** A failure of a message to one address. */
export interface DeliveryFailure extends Failure {
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
    suppressRecipient: recipient === null ? null : normaliseAddress(recipient),
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
