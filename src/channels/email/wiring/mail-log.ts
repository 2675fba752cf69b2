import type { DeliveryReport } from "../../../domain/jobs/report.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import type { ChannelPorts } from "../../contract.ts";
import { MailLog } from "../mail-log/mail-log.ts";

/** Follows the MTA's log, where the process plays that role. */
export function startMailLog(
  { config, reports, owners, away, clock, random, telemetry }: ChannelPorts,
  shutdown: Shutdown,
): void {
  if (!config.roles.includes("maillog") || config.mailLog === null) return;
  // The metrics of e-mail count what it reports.
  const onReport = (report: DeliveryReport) => reports.take(report, "email");
  const mailLog = new MailLog({ path: config.mailLog, home: config.home, onReport, owners, clock, random, telemetry });
  mailLog.start();
  away.addPart("mail log", () => mailLog.health());
  // Stopped before the reports: those that they give up must not count as taken.
  shutdown.add("work", "mail log", () => mailLog.stop());
}
