import { hash } from "node:crypto";
import { recipientKey } from "../../domain/channels/email.ts";
import { isJobId } from "../../domain/ids.ts";
import { TENANT_ID } from "../../domain/tenants/tenant.ts";

/**
 * Formats the Message-ID of a job's e-mail (RFC 5322, 3.6.4): `<job_id.tenant@domain>`. It is the same at every
 * attempt, so a receiver can recognise a repeat, and a reader of it (in the MTA's log or a bounce) can identify the job
 * without a lookup.
 */
export function formatMessageId(jobId: string, tenantId: string, domain: string, mark = ""): string {
  return `<${jobId}.${tenantId}${mark}@${domain}>`;
}

/** A job, as identified by its Message-ID. */
export interface MailedJob {
  readonly jobId: string;
  readonly tenantId: string;
  /** In a message to several recipients, identifies the job's own (`recipientMark`). */
  readonly mark?: string;
}

/** Parses a Message-ID, with or without its angle brackets; null if it is not one of ours. */
export function parseMessageId(messageId: string): MailedJob | null {
  const match = /^<?([0-9a-f-]{36})\.([a-z0-9-]{1,63})(\.[0-9a-f]{16})?@[^<>@\s]+>?$/.exec(messageId.trim());
  const [, jobId, tenantId, mark] = match ?? [];
  if (jobId === undefined || tenantId === undefined) return null;
  if (!isJobId(jobId) || !TENANT_ID.test(tenantId)) return null;
  return mark === undefined ? { jobId, tenantId } : { jobId, tenantId, mark };
}

/**
 * Computes the mark that identifies the main recipient in the Message-ID of a mail to several, so that the reader of
 * the MTA's log can attribute a line's outcome without a lookup. It reveals no more than the header To.
 */
export function recipientMark(recipient: string): string {
  return `.${hash("sha256", recipientKey(recipient), "hex").slice(0, MARK_DIGITS)}`;
}

const MARK_DIGITS = 16;

/**
 * Returns the further recipient that an outcome belongs to, normalised; undefined for the job's own recipient, and if
 * the message has no other.
 */
export function furtherRecipient({ mark }: Pick<MailedJob, "mark">, recipient: string): string | undefined {
  return mark === undefined || recipientMark(recipient) === mark ? undefined : recipientKey(recipient);
}
