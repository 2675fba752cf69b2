import type { ObserveResult } from "../../src/domain/jobs/queue.ts";
import type { DeliveryReport } from "../../src/domain/jobs/report.ts";
import type { Dice } from "./dice.ts";
import type { JobTruth } from "./job-checker.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimCluster } from "./sim-cluster.ts";

/** How long a provider waits for the answer to a report before it sends it again. */
const PATIENCE_MS = 8_000;

export interface WebhookCallsParts {
  readonly clock: SimClock;
  readonly dice: Dice;
  readonly watch: Watch;
  /** A process that takes reports, or null where all are gone. */
  aHouse(): SimCluster | null;
  truthOf(jobId: string): JobTruth | undefined;
  /** A call has reached a process. */
  called(): void;
}

/** A provider that calls with its reports, and calls again until each is taken: by any process, in any order. */
export class WebhookCalls {
  /** Reports that have not been taken yet. */
  inFlight = 0;

  constructor(private readonly parts: WebhookCallsParts) {}

  send(report: DeliveryReport, delayMs: number): void {
    this.inFlight += 1;
    this.parts.clock.at(delayMs, () => this.call(report));
  }

  private call(report: DeliveryReport): void {
    const { clock, dice, aHouse } = this.parts;
    const house = aHouse();
    let isOver = false;
    const end = (result: ObserveResult | null) => {
      if (isOver) return;
      isOver = true;
      patience.cancel();
      if (result === null) clock.at(dice.between(500, 5_000), () => this.call(report));
      else {
        this.inFlight -= 1;
        this.check(report, result);
      }
    };
    const patience = clock.at(PATIENCE_MS, () => end(null));
    if (house === null) return;
    this.parts.called();
    house.process.enter(() => {
      house.webhook(report).then(end, () => end(null));
    }, "answer");
  }

  /** An acknowledged report is with its job. */
  private check({ jobId, type }: DeliveryReport, result: ObserveResult): void {
    const truth = this.parts.truthOf(jobId);
    if (truth === undefined || truth.isExcused) return;
    const isKept = truth.told.has(type) || truth.types.has(type);
    this.parts.watch.demand(isKept, "reportKept", () => `${jobId}: ${type}, ${result}`);
  }
}
