import { type Clock, sleep } from "../core/clock.ts";
import { isOutage } from "../core/errors.ts";
import type { ObserveResult } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { DeliveryReport } from "../core/report.ts";
import type { Telemetry } from "../core/telemetry.ts";
import { type ObserveReportPorts, observeReport } from "./observe-report.ts";

export interface DeliveryReportsPorts extends ObserveReportPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Takes what an MTA or a provider says about a message, and adds it to its job's history.
 *
 * D1. A report is repeated until the journal has it, or `stop`. D2. A report that overtakes our own note of the
 * hand-over waits for it, for a while: the hand-over may also have ended without an answer.
 */
export class DeliveryReports {
  private readonly stopping = new AbortController();
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(private readonly ports: DeliveryReportsPorts) {}

  /** Never rejects. Resolves when the report is in the journal or is known to belong to no job. */
  async take(report: DeliveryReport): Promise<void> {
    const taking = this.recordUntilKnown(report);
    this.underWay.add(taking);
    const result = await taking;
    this.underWay.delete(taking);
    this.ports.telemetry.count("delivery_reports", { type: report.type, result });
  }

  /** Takes no more time for what could not be recorded yet. Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.underWay);
  }

  private async recordUntilKnown(report: DeliveryReport): Promise<ObserveResult | "given up"> {
    const { clock, telemetry } = this.ports;
    const holdUntilMs = clock.monotonicMs() + limits.reportHoldMs;
    for (let waitMs = 10; ; waitMs = Math.min(2 * waitMs, limits.journalRetryMs)) {
      try {
        const result = await observeReport(this.ports, report, clock.monotonicMs() < holdUntilMs ? "hold" : "record");
        if (result !== "early") return result;
      } catch (error) {
        const expected = isOutage(error);
        telemetry.log(expected ? "warn" : "error", "a report was not recorded and is repeated", {
          error: String(error),
        });
      }
      if (this.stopping.signal.aborted) return "given up";
      await sleep(clock, waitMs, this.stopping.signal);
    }
  }
}
