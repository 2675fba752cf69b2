import { hash } from "node:crypto";
import { recipientKey } from "../../domain/channels/email.ts";
import { isJobId } from "../../domain/ids.ts";
import { TENANT_ID } from "../../domain/tenants/tenant.ts";

/**
 * The Message-ID of a job's e-mail (RFC 5322, 3.6.4): `<job_id.tenant@domain>`. It is the same at every attempt, so a
 * receiver can recognise a repeat, and a reader of it (in the MTA's log or a bounce) can identify the job without a
 * look-up.
 */
export function formatMessageId(jobId: string, tenantId: string, domain: string, mark = ""): string {
  return `<${jobId}.${tenantId}${mark}@${domain}>`;
}

/** A job, as its Message-ID identifies it. */
export interface MailedJob {
  readonly jobId: string;
  readonly tenantId: string;
  /** Of a message to several recipients: which of them is the job's own (`recipientMark`). */
  readonly mark?: string;
}

/** The job that a Message-ID (with or without its angle brackets) identifies, or null if it is not one of ours. */
export function parseMessageId(messageId: string): MailedJob | null {
  const match = /^<?([0-9a-f-]{36})\.([a-z0-9-]{1,63})(\.[0-9a-f]{16})?@[^<>@\s]+>?$/.exec(messageId.trim());
  const [, jobId, tenantId, mark] = match ?? [];
  if (jobId === undefined || tenantId === undefined) return null;
  if (!isJobId(jobId) || !TENANT_ID.test(tenantId)) return null;
  return mark === undefined ? { jobId, tenantId } : { jobId, tenantId, mark };
}

/**
 * Goes into the Message-ID of a mail to several recipients and tells its main one, so that a reader of the MTA's log knows
 * whose outcome a line is, without a look-up. It says nothing that the header To does not.
 */
export function recipientMark(recipient: string): string {
  return `.${hash("sha256", recipientKey(recipient), "hex").slice(0, MARK_DIGITS)}`;
}

const MARK_DIGITS = 16;

/**
 * Whose outcome it is: undefined for the job's own recipient and where the message has no other, otherwise the further
 * recipient, normalised.
 */
export function furtherRecipient({ mark }: Pick<MailedJob, "mark">, recipient: string): string | undefined {
  return mark === undefined || recipientMark(recipient) === mark ? undefined : recipientKey(recipient);
}
