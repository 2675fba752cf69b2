import { recipientDomain } from "../../../domain/tenants/recipient-index.ts";
import type { Failure } from "../failure-report.ts";
import { MimePart, parseFields } from "./mime-part.ts";
import { isFromMailSystem, parseNotice } from "./plain-notice.ts";
import { NOTHING_RETURNED, type ReturnedMessage, returnedMessage } from "./returned-message.ts";

/** A message could not be delivered to one of its recipients. */
export interface MailFailure extends Failure {
  readonly kind: "failure";
  /** As the reporting server spells them; for a forwarded message, not the address that we sent it to. */
  readonly recipients: readonly string[];
  /** The host that refused it, or else the recipient's domain; null: unknown. */
  readonly provider: string | null;
  /** The part of the text that gives the reason; by default all of it. */
  readonly shown?: string;
}

/** `complaint`: the recipient marked it as spam. `unreadable`: it is a report of unknown meaning. */
export type Finding = MailFailure | { readonly kind: "complaint" } | { readonly kind: "unreadable" };

/** A mail server's or provider's report by mail about one of our messages. */
export interface MailReport {
  /** Empty for an irrelevant message, such as a delay, a success, or an answer from a person or an auto-responder. */
  readonly findings: readonly Finding[];
  readonly returned: ReturnedMessage;
}

/**
 * Parses a message that reports on another one: a delivery status notification (RFC 3464, 6533), feedback (RFC 5965, or
 * as Outlook.com sends it), or a mail system's notice in words. A report within another message is ignored, because a
 * person wrote that message.
 */
export function parseMailReport(source: Uint8Array): MailReport {
  const message = MimePart.parse(Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString("latin1"));
  const findings = findingsIn(message);
  return { findings, returned: findings.length === 0 ? NOTHING_RETURNED : returnedMessage(message) };
}

function findingsIn(message: MimePart): readonly Finding[] {
  if (message.mediaType === "multipart/report") return reportedIn(message);
  if (isOutlookComplaint(message)) return [COMPLAINT];
  return isFromMailSystem(message) ? reportedIn(message) : [];
}

const COMPLAINT: Finding = { kind: "complaint" };
const UNREADABLE: Finding = { kind: "unreadable" };

/** RFC 3462, 1; for internationalised mail RFC 6533, 4. */
const STATUS: ReadonlySet<string> = new Set(["message/delivery-status", "message/global-delivery-status"]);

function reportedIn(message: MimePart): readonly Finding[] {
  const parts = message.parts();
  const feedback = parts.find(({ mediaType }) => mediaType === "message/feedback-report");
  if (feedback !== undefined) return feedbackIn(feedback);
  const statuses = parts.filter(({ mediaType }) => STATUS.has(mediaType));
  const groups = statuses.flatMap(recipientGroups);
  if (groups.length > 0) return groups.filter(hasFailed).map((group) => failureIn(group, message));
  const type = message.parameter("report-type")?.toLowerCase() ?? "delivery-status";
  if (/^disposition-notification$/.test(type)) return [];
  return type === "delivery-status" ? failureInWords(message) : [UNREADABLE];
}

/** RFC 5965, 7.3. `not-spam` is the opposite; `auth-failure` and `virus` come from a machine, not from a recipient. */
const COMPLAINTS: ReadonlySet<string> = new Set(["abuse", "fraud"]);
const NO_COMPLAINTS: ReadonlySet<string> = new Set(["not-spam", "auth-failure", "virus", "dmarc"]);

function feedbackIn(part: MimePart): readonly Finding[] {
  const type = parseFields(part.text()).get("feedback-type")?.toLowerCase() ?? "";
  if (COMPLAINTS.has(type)) return [COMPLAINT];
  return NO_COMPLAINTS.has(type) ? [] : [UNREADABLE];
}

/**
 * Whether the message is a complaint from Outlook.com's programme (JMRP), which attaches the message and adds its own
 * field.
 */
function isOutlookComplaint(message: MimePart): boolean {
  if (!message.mediaType.startsWith("multipart/")) return false;
  const isTheirs =
    /@(?:[\w-]{1,63}\.){0,3}(?:hotmail|outlook|microsoft)\.com\b/i.test(message.field("from") ?? "") &&
    /^complaint about message\b/i.test(message.field("subject") ?? "");
  return message.parts().some((part) => {
    if (part.mediaType !== "message/rfc822") return false;
    return isTheirs || MimePart.parse(part.content()).field("x-hmxmroriginalrecipient") !== null;
  });
}

const RECIPIENTS_MAX = 20;
/** Includes groups without a recipient. */
const GROUPS_MAX = 100;

type Fields = ReadonlyMap<string, string>;

/**
 * Splits the fields into groups, separated by empty lines: the message's, and each recipient's (RFC 3464, 2.1). Some
 * servers write one group for both.
 */
function recipientGroups(part: MimePart): readonly Fields[] {
  const groups: Fields[] = [];
  let lines: string[] = [];
  let ended = 0;
  const end = () => {
    ended += 1;
    const fields = parseFields(lines.join("\n"));
    lines = [];
    if (PER_RECIPIENT.some((name) => fields.has(name))) groups.push(fields);
  };
  for (const line of part.text().split("\n")) {
    if (groups.length === RECIPIENTS_MAX || ended === GROUPS_MAX) break;
    if (line.trim() !== "") lines.push(KNOWN_FIELD.test(line) ? line.trimStart() : line);
    else if (lines.length > 0) end();
  }
  if (groups.length < RECIPIENTS_MAX && ended < GROUPS_MAX) end();
  return groups;
}

const NO_FAILURES: ReadonlySet<string> = new Set(["delayed", "delivered", "relayed", "expanded"]);
const PER_RECIPIENT = ["final-recipient", "action"];
/** Matches a field even if stray blanks make it look like a folded line. */
const KNOWN_FIELD =
  /^[ \t]{1,80}(?:original-recipient|final-recipient|action|status|remote-mta|diagnostic-code)[ \t]{0,9}:/i;

/**
 * Whether the delivery failed. `delayed` will be retried; `relayed` and `expanded` are no proven failures. Other
 * actions count by their status.
 */
function hasFailed(group: Fields): boolean {
  const action = /[a-z]+/.exec(group.get("action")?.toLowerCase() ?? "")?.[0];
  if (action?.startsWith("fail")) return true;
  return !NO_FAILURES.has(action ?? "") && (group.get("status") ?? "").startsWith("5.");
}

function failureIn(group: Fields, message: MimePart): MailFailure {
  const enhancedCode = /[245]\.\d{1,3}\.\d{1,3}\b/.exec(group.get("status") ?? "")?.[0] ?? null;
  const diagnostic = typed(group.get("diagnostic-code")) || supplement(group.get("x-supplementary-info"));
  const isVague = enhancedCode === null || !/^[45]\.[12]\.[1-9]/.test(enhancedCode);
  const notice = diagnostic === "" && isVague ? parseNotice(message) : null;
  const recipients = [group.get("original-recipient"), group.get("final-recipient")].map(addressIn);
  const remote = /^[^\s()]{1,255}/.exec(typed(group.get("remote-mta")))?.[0];
  return {
    kind: "failure",
    recipients: recipients.filter((each) => each !== ""),
    provider: remote !== undefined && /[a-z]/i.test(remote) ? remote : recipientDomain(recipients[1] ?? ""),
    enhancedCode,
    text: diagnostic || notice?.words || `the destination answered with status ${enhancedCode ?? "unknown"}`,
    ...(notice !== null && notice.words !== "" && { shown: notice.reason }),
    command: null,
  };
}

function failureInWords(message: MimePart): readonly Finding[] {
  const { words, reason, recipients, isFailure } = parseNotice(message);
  if (!isFailure) return [];
  const said = words === "" ? { text: "it came back without a reason" } : { text: words, shown: reason };
  return [{ kind: "failure", recipients, provider: null, enhancedCode: null, ...said, command: null }];
}

/** Removes the type from `smtp; 550 5.1.1 …` and `rfc822; ann@example.com`. */
function typed(value: string | undefined): string {
  return (value ?? "").replace(/^\s{0,80}[\w-]{1,40}\s{0,10};/, "").trim();
}

/** Extracts the reply from `<mx.example.com #5.0.0 smtp; 550 5.1.1 …>`. */
function supplement(value: string | undefined): string {
  return (value ?? "").replace(/^<\S{1,255} #\S{1,20} \w{1,10};/, "").trim();
}

/** Extracts an address without its type, comments and brackets (RFC 3464, 2.3.1; RFC 6533, 3 for `\x{f6}`). */
function addressIn(value: string | undefined): string {
  const bare = typed(value).replace(/\([^()]{0,500}\)/g, " ");
  const address = (/<([^<>]{0,320})>/.exec(bare)?.[1] ?? bare).trim();
  return address.replace(/\\x\{([0-9A-Fa-f]{1,5})\}/g, (_match, hex: string) =>
    String.fromCodePoint(Number.parseInt(hex, 16)),
  );
}
