import { MailLog } from "../channels/email/mail-log/mail-log.ts";
import type { Config } from "../config/config.ts";
import type { DeliveryReport } from "../domain/jobs/report.ts";
import type { DeliveryReports } from "../engine/reports/delivery-reports.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import type { AwayParts } from "./away-parts.ts";
import { jobOwners, type OwnersPorts } from "./job-owners.ts";
import type { Shutdown } from "./shutdown.ts";

interface Parts {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
}

/** Follows the MTA's log, where the process plays that role. */
export function startMailLog(
  { config, telemetry }: Parts,
  shutdown: Shutdown,
  { reports, away, ...stores }: OwnersPorts & { readonly reports: DeliveryReports; readonly away: AwayParts },
): void {
  if (!config.roles.includes("maillog") || config.mailLog === null) return;
  // The metrics of e-mail count what it reports.
  const onReport = (report: DeliveryReport) => reports.take(report, "email");
  const common = {
    onReport,
    owners: jobOwners(stores, config.shards),
    clock: systemClock,
    random: systemRandom,
    telemetry,
  };
  const mailLog = new MailLog({ path: config.mailLog, home: config.home, ...common });
  mailLog.start();
  away.addPart("mail log", () => mailLog.health());
  // Stopped before the reports: those that they give up must not count as taken.
  shutdown.add("work", "mail log", () => mailLog.stop());
}
