import { appendFileSync } from "node:fs";
import { MailLog } from "../../../../src/channels/email/mail-log/mail-log.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";

/** Follows a log until it is killed, and writes each report that it takes: `<log> <home> <file of reports>`. */
const [path = "", home = "", out = ""] = process.argv.slice(2);

new MailLog({
  path,
  home,
  owners: { findOwner: async () => null },
  clock: systemClock,
  random: systemRandom,
  telemetry: new QuietTelemetry(),
  onReport: async ({ jobId, type }) => {
    // A kill then finds some reports in flight.
    await Bun.sleep(Math.random() * 5);
    appendFileSync(out, `${jobId} ${type}\n`);
  },
}).start();
