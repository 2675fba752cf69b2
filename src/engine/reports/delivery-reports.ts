import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import { type ObserveReportPorts, observeReport } from "../../domain/observe-report.ts";
import type { ObserveResult } from "../../domain/queue.ts";
import type { DeliveryReport } from "../../domain/report.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { engineLimits } from "../limits.ts";

export interface DeliveryReportsPorts extends ObserveReportPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Takes reports about a message from an MTA or a provider, and adds them to the job's history.
 *
 * D1. A report is repeated until the queue has it, or `stop`.
 * D2. No report waits: one that overtakes our own record of the hand-over is kept with its job, and one about a job
 *     that waits for another try ends the job, because a party that reports on a message has it.
 */
export class DeliveryReports {
  private readonly stopping = new AbortController();
  private readonly inFlight = new Set<Promise<unknown>>();

  constructor(private readonly ports: DeliveryReportsPorts) {}

  /** Never rejects. Resolves when the report is in the queue or is known to belong to no job. */
  async take(report: DeliveryReport): Promise<void> {
    const taking = this.recordUntilKnown(report);
    this.inFlight.add(taking);
    const result = await taking;
    this.inFlight.delete(taking);
    this.ports.telemetry.count("delivery_reports", { type: report.type, result });
  }

  /** Gives up reports that could not be recorded yet. Resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.inFlight);
  }

  private async recordUntilKnown(report: DeliveryReport): Promise<ObserveResult | "given up"> {
    const { clock, telemetry } = this.ports;
    for (let waitMs = 10; ; waitMs = Math.min(2 * waitMs, engineLimits.queueRetryMs)) {
      try {
        return await observeReport(this.ports, report);
      } catch (error) {
        const expected = isOutage(error);
        telemetry.log(expected ? "warn" : "error", "a report could not be recorded and is repeated", {
          error: String(error),
        });
      }
      if (this.stopping.signal.aborted) return "given up";
      await sleep(clock, waitMs, this.stopping.signal);
    }
  }
}
