import type { Failure } from "../failure-report.ts";
import { MimePart, parseFields } from "./mime-part.ts";

/** What a mail server or provider reports by mail about one of our messages. */
export interface MailReport {
  /** The recipient marked it as spam, or it could not be delivered to one of its recipients. */
  readonly finding:
    | { readonly kind: "complaint" }
    | ({
        readonly kind: "failure";
        readonly replyCode: number | null;
        /** As the reporting server spells them; for a forwarded message, not the address that we sent it to. */
        readonly recipients: readonly string[];
      } & Failure);
  /** Fields of the returned message. */
  readonly returned: { readonly messageId: string | null; readonly listUnsubscribe: string | null };
}

/**
 * Parses a message that reports on another one: a delivery status notification (RFC 3464) or feedback (RFC 5965). Only
 * a top-level `multipart/report` counts; a message that merely contains one was written by a person. Empty: it reports
 * nothing relevant (a delay, a success, an answer from a person or an auto-responder).
 */
export function parseMailReport(source: Uint8Array): readonly MailReport[] {
  const message = MimePart.parse(Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString("latin1"));
  if (message.mediaType !== "multipart/report") return [];
  const parts = message.parts();
  const original = parts.find(({ mediaType }) => RETURNED.has(mediaType));
  if (original === undefined) return [];
  const head = MimePart.parse(original.content());
  const returned = { messageId: head.field("message-id"), listUnsubscribe: head.field("list-unsubscribe") };
  const reports = parts.flatMap((part): readonly MailReport["finding"][] => {
    if (part.mediaType === "message/feedback-report") return isComplaint(part) ? [{ kind: "complaint" }] : [];
    return STATUS.has(part.mediaType) ? failuresIn(part) : [];
  });
  return reports.map((finding) => ({ finding, returned }));
}

/** RFC 3462, 1 and 2; for internationalised mail RFC 6533, 4. */
const RETURNED: ReadonlySet<string> = new Set([
  "message/rfc822",
  "text/rfc822-headers",
  "message/rfc822-headers",
  "message/global",
  "message/global-headers",
]);
const STATUS: ReadonlySet<string> = new Set(["message/delivery-status", "message/global-delivery-status"]);

/** RFC 5965, 7.3. `not-spam` is the opposite; `auth-failure` and `virus` come from a machine, not from a recipient. */
const COMPLAINTS: ReadonlySet<string> = new Set(["abuse", "fraud"]);

function isComplaint(part: MimePart): boolean {
  return COMPLAINTS.has(parseFields(part.content()).get("feedback-type")?.toLowerCase() ?? "");
}

const RECIPIENTS_MAX = 20;

/** Groups of fields, separated by empty lines: first the message's, then each recipient's (RFC 3464, 2.1). */
function failuresIn(part: MimePart): readonly Extract<MailReport["finding"], { kind: "failure" }>[] {
  const [, ...groups] = part
    .content()
    .trimStart()
    .split(/\n[\r\n]*\n/, RECIPIENTS_MAX + 1)
    .map(parseFields);
  // `delayed` will be tried again; `relayed` and `expanded` are not known to have failed.
  const failed = groups.filter((fields) => fields.get("action")?.toLowerCase() === "failed");
  return failed.map((fields) => {
    const text = typed(fields.get("diagnostic-code"));
    const status = ENHANCED_CODE.exec(fields.get("status") ?? "")?.[0] ?? null;
    const isVague = status === null || status === "5.0.0" || status === "5.5.0";
    return {
      kind: "failure",
      recipients: [fields.get("original-recipient"), fields.get("final-recipient")]
        .map(typed)
        .filter((each) => each !== ""),
      enhancedCode: isVague ? (/^[45]\d\d[ -]([45]\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1] ?? status) : status,
      replyCode: Number(/^[45]\d\d\b/.exec(text)?.[0]) || null,
      text: text === "" ? `the destination answered with status ${status ?? "unknown"}` : text,
      command: null,
    };
  });
}

const ENHANCED_CODE = /^[245]\.\d{1,3}\.\d{1,3}\b/;

/** Removes the type from `smtp; 550 5.1.1 …` and `rfc822; ann@example.com`. */
function typed(value: string | undefined): string {
  return (value ?? "").replace(/^[\w-]{1,40}\s{0,10};/, "").trim();
}
