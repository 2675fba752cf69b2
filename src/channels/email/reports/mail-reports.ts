import { type Clock, sleep } from "../../../domain/clock.ts";
import { parseRecipient, recipientKey } from "../../../domain/email.ts";
import { UnavailableError } from "../../../domain/errors.ts";
import { limits } from "../../../domain/limits.ts";
import type { DeliveryReport } from "../../../domain/report.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { failureReport } from "../failure-report.ts";
import type { LinkReader } from "../links/link-tokens.ts";
import { furtherRecipient, parseMessageId } from "../message-id.ts";
import { type MailReport, parseMailReport } from "./mail-report.ts";

export interface MailReportsPorts {
  /** Records the report, and retries until it is recorded or the signal aborts. */
  readonly reports: { take(report: DeliveryReport, channel: "email", givenUp: AbortSignal): Promise<void> };
  /** Verifies the unsubscribe link of the returned message. */
  readonly links: LinkReader;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Processes returned mail: late bounces and complaints. Anybody can forge these.
 *
 * B1. A report counts for the job that the returned message identifies, by its signed unsubscribe link or by its
 *     Message-ID, which only its recipient knows.
 * B2. Only the address that the link was signed for is suppressed: a person who has a tenant's message can stop mail to
 *     themselves and to nobody else.
 *     Of a message with copies, a report about another than its main recipient suppresses nobody: the link is not theirs.
 * B3. A report is recorded before it is answered. One that is answered with a failure is not tried any more: the mail server has
 *     it, and sends it again.
 */
export class MailReports {
  constructor(private readonly ports: MailReportsPorts) {}

  /**
   * The number of reports about jobs in the message. Rejects with `UnavailableError` if they could not be recorded in
   * time; the message is safe to repeat.
   */
  async take(source: Uint8Array): Promise<number> {
    const { reports, clock, telemetry } = this.ports;
    const found = parseMailReport(source)
      .map((report) => this.reportOf(report))
      .filter((report) => report !== null);
    telemetry.count("mail_reports", { result: found.length > 0 ? "taken" : "nothing" });
    const answered = new AbortController();
    const late = sleep(clock, limits.drainMs, answered.signal).then(() => "late" as const);
    const taken = Promise.all(found.map((report) => reports.take(report, "email", answered.signal))).then(
      () => "taken" as const,
    );
    const result = await Promise.race([taken, late]);
    answered.abort();
    if (result === "late") throw new UnavailableError("the reports could not be recorded in time");
    return found.length;
  }

  private reportOf({ finding, returned }: MailReport): DeliveryReport | null {
    const link = this.linkOf(returned.listUnsubscribe);
    const job = link ?? parseMessageId(returned.messageId ?? "");
    if (job === null) return null;
    const { tenantId, jobId } = job;
    const recipient = link?.recipient ?? null;
    if (finding.kind === "complaint") {
      return { tenantId, jobId, type: "complained", result: {}, suppressRecipient: recipient };
    }
    const verdict = failureReport({ ...finding, recipient });
    // A bounce always suppresses. If it concerns an address that the mail was forwarded to, or the link was not
    // returned, it only counts as a failure.
    const isOurs = recipient !== null && finding.recipients.some((each) => recipientKey(each) === recipient);
    const copy = isOurs ? undefined : copyOf(returned.messageId, finding.recipients);
    if (copy !== undefined) {
      return {
        tenantId,
        jobId,
        type: verdict.type,
        result: { recipient: copy, ...verdict.result },
        suppressRecipient: null,
      };
    }
    if (verdict.type !== "bounced" || isOurs) return { tenantId, jobId, ...verdict };
    const error = verdict.result["diagnostic"] ?? "";
    return { tenantId, jobId, type: "failed", result: { error }, suppressRecipient: null };
  }

  private linkOf(listUnsubscribe: string | null) {
    const token = /\/u\/([A-Za-z0-9_-]{1,8192})>/.exec(listUnsubscribe ?? "")?.[1];
    return token === undefined ? null : this.ports.links.read("unsubscribe", token);
  }
}

/** The recipient whom a report on a message with copies is about; undefined: its main one, or it has no copies. */
function copyOf(messageId: string | null, recipients: readonly string[]): string | undefined {
  const job = parseMessageId(messageId ?? "");
  const [named] = recipients.filter((each) => parseRecipient(each) !== null);
  return job === null || named === undefined ? undefined : furtherRecipient(job, named);
}
