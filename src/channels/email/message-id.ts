import { isJobId } from "../../domain/ids.ts";
import { TENANT_ID } from "../../domain/tenant.ts";

/**
 * The Message-ID of a job's e-mail (RFC 5322, 3.6.4): `<job_id.tenant@domain>`. It is the same at every attempt, so a
 * receiver can recognise a repeat, and a reader of it (in the MTA's log or a bounce) can identify the job without a
 * look-up.
 */
export function messageIdOf(jobId: string, tenantId: string, domain: string): string {
  return `<${jobId}.${tenantId}@${domain}>`;
}

/** The job that a Message-ID (with or without its angle brackets) identifies, or null if it is not one of ours. */
export function parseMessageId(messageId: string): { jobId: string; tenantId: string } | null {
  const match = /^<?([0-9a-f-]{36})\.([a-z0-9-]{1,63})@[^<>@\s]+>?$/.exec(messageId.trim());
  const [, jobId, tenantId] = match ?? [];
  if (jobId === undefined || tenantId === undefined) return null;
  return isJobId(jobId) && TENANT_ID.test(tenantId) ? { jobId, tenantId } : null;
}
