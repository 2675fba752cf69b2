import { parseRecipient, recipientKey } from "../../../domain/channels/email.ts";
import { type Clock, within } from "../../../domain/clock.ts";
import { UnavailableError } from "../../../domain/errors.ts";
import { isJobId } from "../../../domain/ids.ts";
import type { DeliveryReport } from "../../../domain/jobs/report.ts";
import { limits } from "../../../domain/limits.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { failureReport } from "../failure-report.ts";
import { type LinkReader, readUnsubscribeLink } from "../links/link-tokens.ts";
import { furtherRecipient, type MailedJob, parseMessageId } from "../message-id.ts";
import { type Finding, parseMailReport } from "./mail-report.ts";
import type { ReturnedMessage } from "./returned-message.ts";

export interface MailReportsPorts {
  /** Records the report, and retries until it is recorded or the signal aborts. */
  readonly reports: { take(report: DeliveryReport, channel: "email", givenUp: AbortSignal): Promise<void> };
  /** Verifies the unsubscribe link of the returned message. */
  readonly links: LinkReader;
  /** Finds the job's tenant, or null. Rejects with `UnavailableError` or `TransportError`. */
  readonly owners: { findOwner(jobId: string): Promise<string | null> };
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Processes returned mail: late bounces and complaints. Anyone can forge these.
 *
 * B1. A report counts for the job that the returned message identifies, by its signed unsubscribe link or by its
 *     Message-ID, which only its recipient knows; or else for the one whose return path it came to.
 * B2. Only the address that the link was signed for is suppressed: a person who has a tenant's message can stop mail to
 *     themselves only. A report about a copy's recipient causes no suppression, because the link belongs to the main
 *     recipient.
 * B3. A report is recorded before it is answered. One that is answered with a failure is dropped here, because the mail
 *     server sends it again.
 */
export class MailReports {
  constructor(private readonly ports: MailReportsPorts) {}

  /**
   * Records the reports in the message and returns how many were about jobs. Rejects with `UnavailableError` if they
   * could not be recorded in time; the message is safe to repeat.
   */
  async take(source: Uint8Array): Promise<number> {
    const { reports, clock, telemetry } = this.ports;
    const { findings, returned } = parseMailReport(source);
    const about = findings.length === 0 ? null : await this.identified(returned);
    const found = about === null ? [] : findings.flatMap((finding) => toReport(finding, about) ?? []);
    const isUnreadable = about !== null && found.length < findings.length;
    telemetry.count("mail_reports", { result: found.length > 0 ? "taken" : isUnreadable ? "unreadable" : "nothing" });
    if (isUnreadable) {
      const { tenantId: tenant_id, jobId: job_id } = about.job;
      telemetry.log("warn", "a report about a message came by mail that cannot be read", { tenant_id, job_id });
    }
    const late = () => {
      throw new UnavailableError("the reports could not be recorded in time");
    };
    await within({ clock, ms: limits.drainMs, late }, (over) =>
      Promise.all(found.map((report) => reports.take(report, "email", over))),
    );
    return found.length;
  }

  /** Identifies the job; null if the message is not ours. */
  private async identified({ linkToken, messageId, jobId }: ReturnedMessage): Promise<Identified | null> {
    const { links, owners } = this.ports;
    const link = linkToken === null ? null : readUnsubscribeLink(links, linkToken);
    const named = parseMessageId(messageId ?? "");
    if (link !== null) return { job: link, recipient: link.recipient, named };
    if (named !== null) return { job: named, recipient: null, named };
    if (jobId === null || !isJobId(jobId)) return null;
    const tenantId = await owners.findOwner(jobId);
    return tenantId === null ? null : { job: { tenantId, jobId }, recipient: null, named };
  }
}

/** The job that a report is about. */
interface Identified {
  readonly job: Pick<MailedJob, "tenantId" | "jobId">;
  /** The recipient in the signed link; null if the report has no valid link. */
  readonly recipient: string | null;
  /** The same by its Message-ID. */
  readonly named: MailedJob | null;
}

/** Converts a finding to a report; null if it is unreadable. */
function toReport(finding: Finding, { job, recipient, named }: Identified): DeliveryReport | null {
  const { tenantId, jobId } = job;
  if (finding.kind === "unreadable") return null;
  if (finding.kind === "complaint") {
    return { tenantId, jobId, type: "complained", result: {}, suppressRecipient: recipient };
  }
  const verdict = failureReport({ ...finding, recipient });
  // A bounce always suppresses. If it concerns an address that the mail was forwarded to, or the link was not
  // returned, it only counts as a failure.
  const isOurs = recipient !== null && finding.recipients.some((each) => recipientKey(each) === recipient);
  const copy = isOurs || named === null ? undefined : findCopy(named, finding.recipients);
  if (copy !== undefined) {
    const result = { recipient: copy, ...verdict.result };
    return { tenantId, jobId, type: verdict.type, result, suppressRecipient: null };
  }
  if (verdict.type !== "bounced" || isOurs) return { tenantId, jobId, ...verdict };
  const error = verdict.result["diagnostic"] ?? "";
  return { tenantId, jobId, type: "failed", result: { error }, suppressRecipient: null };
}

/**
 * Returns the copy's recipient that a report is about; undefined for the main recipient, and if the message has no
 * copies.
 */
function findCopy(job: MailedJob, recipients: readonly string[]): string | undefined {
  const [named] = recipients.filter((each) => parseRecipient(each) !== null);
  return named === undefined ? undefined : furtherRecipient(job, named);
}
