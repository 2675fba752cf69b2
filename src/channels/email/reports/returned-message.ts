import { JOB_FIELD } from "../mime/kept-mail.ts";
import { MimePart } from "./mime-part.ts";

/** A report's data on the message that it is about. */
export interface ReturnedMessage {
  readonly messageId: string | null;
  /** Token of its unsubscribe link. */
  readonly linkToken: string | null;
  /** The job in its return path, to which the report was addressed. */
  readonly jobId: string | null;
}

export const NOTHING_RETURNED: ReturnedMessage = { messageId: null, linkToken: null, jobId: null };

/** Reads the returned parts of the message, wherever they are, and the address that the report was sent to. */
export function returnedMessage(report: MimePart): ReturnedMessage {
  const parts = report.parts();
  const original = parts.find(({ mediaType }) => RETURNED.has(mediaType));
  const head = original === undefined ? null : MimePart.parse(original.content());
  const linkToken = LINK.exec(head?.field("list-unsubscribe") ?? "")?.[1] ?? null;
  // A message that was sent unchanged has its own Message-ID.
  const named = head?.field(JOB_FIELD.toLowerCase()) ?? head?.field("message-id") ?? "";
  const messageId = OWN_ID.exec(named)?.[0] ?? null;
  const returned = { linkToken, messageId, jobId: jobIn(report.head, ...parts.map(({ body }) => body)) };
  if (linkToken !== null || messageId !== null) return returned;
  // Returned as plain text, or only mentioned.
  const texts = [...(parts.length === 0 ? [report] : parts).map((part) => part.content()), report.head];
  return { ...returned, linkToken: firstIn(texts, LINK)?.[1] ?? null, messageId: firstIn(texts, OWN_ID)?.[0] ?? null };
}

/** RFC 3462, 1 and 2; for internationalised mail RFC 6533, 4. */
const RETURNED: ReadonlySet<string> = new Set([
  "message/rfc822",
  "text/rfc822-headers",
  "message/rfc822-headers",
  "message/global",
  "message/global-headers",
]);

const LINK = /\/u\/([A-Za-z0-9_-]{20,8192})(?![A-Za-z0-9_-])/;
/** As `formatMessageId` writes it. */
const OWN_ID = /<?[0-9a-f]{8}-[0-9a-f-]{27}\.[a-z0-9.-]{1,80}@[^<>@\s]{1,255}>?/;
/** As `formatReturnPath` writes it, in any case. */
const RETURN_PATH = /\bb\+([0-9a-f]{8}-[0-9a-f-]{27})@/i;
const SEARCHED_CHARS_MAX = 256 * 1024;

function jobIn(...texts: readonly string[]): string | null {
  return firstIn(texts, RETURN_PATH)?.[1]?.toLowerCase() ?? null;
}

function firstIn(texts: readonly string[], pattern: RegExp): RegExpExecArray | null {
  for (const text of texts) {
    const found = pattern.exec(text.slice(0, SEARCHED_CHARS_MAX));
    if (found !== null) return found;
  }
  return null;
}
