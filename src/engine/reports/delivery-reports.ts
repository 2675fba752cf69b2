import { BackOff, type BackOffBounds } from "../../domain/back-off.ts";
import { sleep } from "../../domain/clock.ts";
import { isOutage, UnavailableError } from "../../domain/errors.ts";
import { FailureLog } from "../../domain/failure-log.ts";
import { FairTurns } from "../../domain/fair-turns.ts";
import type { EventType } from "../../domain/jobs/event.ts";
import type { ChannelName, JobRecord } from "../../domain/jobs/job.ts";
import { type ObserveReportPorts, observeReport } from "../../domain/jobs/observe-report.ts";
import type { ObserveResult } from "../../domain/jobs/queue.ts";
import type { DeliveryReport } from "../../domain/jobs/report.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { maskedText } from "../../domain/texts/masked.ts";
import { engineLimits } from "../limits.ts";

/** Sooner than other calls: a callback waits for its answer meanwhile. */
const RETRY: BackOffBounds = { ...engineLimits.queueRetry, firstMs: 10 };

export interface DeliveryReportsPorts extends ObserveReportPorts, RuntimePorts {}

/**
 * Takes reports about a message from an MTA or a provider, and adds them to the job's history.
 *
 * D1. A report is repeated until the queue has it, `stop` is called, or its sender was requested to repeat it.
 * D2. No report waits: one that overtakes our own record of the hand-over is kept with its job, and one about a job
 *     that waits for another try ends the job, because a party that reports on a message has it.
 * D3. Jobs that have left the queue are looked up in their tenants' turn, few at a time.
 */
export class DeliveryReports {
  private readonly stopping = new AbortController();
  private readonly inFlight = new Set<Promise<unknown>>();
  private readonly failures: FailureLog;
  private readonly reads = new FairTurns(engineLimits.reportReads);
  private readonly observing: ObserveReportPorts;
  private repeating = 0;

  constructor(private readonly ports: DeliveryReportsPorts) {
    this.failures = new FailureLog(ports.telemetry, ports.clock);
    this.observing = { ...ports, eventStore: { job: (tenantId, jobId) => this.readInTurn(tenantId, jobId) } };
  }

  /**
   * Records a report. Never rejects. Resolves when the report is in the queue or is known to belong to no job.
   * `channel`: the channel whose metrics count it; null: it is about a reader. `givenUp` aborts when its sender will
   * send it again.
   */
  async take(report: DeliveryReport, channel: ChannelName | null = null, givenUp?: AbortSignal): Promise<void> {
    const taking = this.recordUntilKnown(report, givenUp);
    this.inFlight.add(taking);
    const result = await taking;
    this.inFlight.delete(taking);
    this.ports.telemetry.count("delivery_reports", { type: report.type, result });
    if (channel !== null && isNews(result)) this.note(report, channel);
  }

  /** Gives up reports that could not be recorded yet. Resolves when no report is in flight. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.inFlight);
    this.failures.stop();
  }

  private note({ tenantId, jobId, type, result }: DeliveryReport, channel: ChannelName): void {
    this.ports.telemetry.count("messages", { channel, outcome: nameOutcome(type) });
    if (!BAD_NEWS.has(type)) return;
    this.failures.note(tenantId, "a message failed after its hand-over", () => {
      const error = maskedText(String(result["error"] ?? result["diagnostic"] ?? ""));
      return { job_id: jobId, channel, type, error };
    });
  }

  private async recordUntilKnown(report: DeliveryReport, givenUp?: AbortSignal): Promise<ObserveResult | "given up"> {
    const waits = new BackOff(RETRY, this.ports.random);
    let isRepeated = false;
    try {
      while (true) {
        try {
          return await observeReport(this.observing, report);
        } catch (error) {
          if (!isRepeated) this.beginRepeating(error);
          isRepeated = true;
        }
        if (this.stopping.signal.aborted || givenUp?.aborted === true) return "given up";
        await sleep(this.ports.clock, waits.nextMs(), this.stopping.signal);
      }
    } finally {
      if (isRepeated) this.endRepeating();
    }
  }

  private readInTurn(tenantId: string, jobId: string): Promise<JobRecord | null> {
    return this.reads.inTurn(tenantId, async () => {
      // Callers that still wait for a turn return at once.
      if (this.stopping.signal.aborted) throw new UnavailableError("this process stops");
      return this.ports.eventStore.job(tenantId, jobId);
    });
  }

  /** Logs one line for an outage, however many reports wait for its end; another error gets a line for each report. */
  private beginRepeating(error: unknown): void {
    const isExpected = isOutage(error);
    this.repeating += 1;
    if (isExpected && this.repeating > 1) return;
    const message = "a report could not be recorded and is repeated";
    this.ports.telemetry.log(isExpected ? "warn" : "error", message, { error: String(error) });
  }

  private endRepeating(): void {
    this.repeating -= 1;
    if (this.repeating === 0 && !this.stopping.signal.aborted)
      this.ports.telemetry.log("info", "reports are recorded again");
  }
}

const BAD_NEWS: ReadonlySet<EventType> = new Set(["bounced", "complained", "failed"]);

function isNews(result: ObserveResult | "given up"): boolean {
  return result === "recorded" || result === "kept";
}

/** Distinguishes a job that failed after its hand-over from one that was never handed over. */
function nameOutcome(type: EventType): string {
  return type === "failed" ? "failed_later" : type;
}
