import { isJobId } from "../../domain/ids.ts";
import { limits } from "../../domain/limits.ts";

/**
 * Whether the text is exactly one mailbox of RFC 5321, 4.1.2 (dot-string or quoted local part, domain or address
 * literal; UTF-8 as in RFC 6531). Checks the syntax, which decides how many recipients a reader sees, and not whether
 * the domain exists.
 */
export function isMailAddress(text: string): boolean {
  return Buffer.byteLength(text) <= limits.addressBytesMax && MAILBOX.test(text) && text.isWellFormed();
}

const ATOM = '[^\\s\\p{C}()<>\\[\\]:;@\\\\,"]+';
// Without angle brackets: nodemailer would replace them, and send to another mailbox.
const QUOTED = '"(?:[^"\\\\<>\\p{C}]|\\\\[^<>\\p{C}])*"';
const LITERAL = "\\[[A-Za-z0-9:.]+\\]";
const MAILBOX = new RegExp(`^(?:${ATOM}|${QUOTED})@(?:${ATOM}|${LITERAL})$`, "u");

/**
 * Formats the envelope sender of a job's e-mail: `b+<job_id>@host`, 38 characters before the `@` (RFC 5321, 4.5.3.1.1
 * allows 64), case-insensitive. A bounce sent to it identifies its job. A job id holds 74 random bits and is known only
 * to the message's recipient, who can report a bounce of that message and of no other.
 */
export function formatReturnPath(jobId: string, host: string): string {
  return `b+${jobId}@${host}`;
}

/** Returns the job with this return path, or null. */
export function jobOfReturnPath(address: string): string | null {
  const jobId = /^b\+([0-9a-f-]{36})@/i.exec(address)?.[1]?.toLowerCase() ?? "";
  return isJobId(jobId) ? jobId : null;
}
