import type { FailureCause } from "../../domain/jobs/outcome.ts";
import type { Telemetry } from "../../domain/telemetry.ts";

const OUTCOMES = [
  "accepted",
  "sent",
  "failed",
  "failed_again",
  "suppressed",
  "purged",
  "delivered",
  "bounced",
  "complained",
  "failed_later",
];
const CAUSES: readonly FailureCause[] = ["refused", "content", "no_clear_answer", "relay_away", "gone", "purged"];

/**
 * Shows the counters that alerts are about with 0. Prometheus sees an increase only between two samples of a series: of one that
 * begins with its first event, that event and what came with it before the next scrape would never be seen.
 */
export function countFromZero(
  telemetry: Pick<Telemetry, "count">,
  channels: readonly { readonly name: string }[],
): void {
  for (const { name: channel } of channels) {
    for (const outcome of OUTCOMES) telemetry.count("messages", { channel, outcome }, 0);
    for (const cause of CAUSES) telemetry.count("message_failures", { channel, cause }, 0);
  }
}
