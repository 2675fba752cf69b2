import { expect, test } from "bun:test";
import type { DeliveryReport } from "../../../src/domain/jobs/report.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { Engagements } from "../../../src/engine/reports/engagements.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";

class CountingTelemetry extends QuietTelemetry {
  readonly dropped: unknown[] = [];
  override count(...what: readonly unknown[]): void {
    this.dropped.push(what);
  }
}

/** Reports that are recorded when the test says so. */
class Reports {
  readonly taken: DeliveryReport[] = [];
  private readonly waiting: (() => void)[] = [];
  take(report: DeliveryReport): Promise<void> {
    this.taken.push(report);
    return new Promise((resolve) => this.waiting.push(resolve));
  }
  recordAll(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

const click = { type: "clicked", tenantId: "acme", jobId: "j", url: "https://x.test/", by: null } as const;

test("an engagement repeated while it is being recorded is reported once, a different one as well", async () => {
  const reports = new Reports();
  const engagements = new Engagements({ reports, telemetry: new QuietTelemetry() });
  engagements.note(click);
  engagements.note(click);
  engagements.note({ ...click, url: "https://y.test/" });
  engagements.note({ ...click, type: "opened", url: null });
  engagements.note({ ...click, by: { name: "Barracuda", isMachine: true } });
  expect(reports.taken.map(({ type, result }) => [type, result])).toEqual([
    ["clicked", { url: "https://x.test/" }],
    ["clicked", { url: "https://y.test/" }],
    ["opened", {}],
    ["clicked", { url: "https://x.test/", machine: true, by: "Barracuda" }],
  ]);
  reports.recordAll();
  await eventually("it may be reported again", () => {
    engagements.note(click);
    return reports.taken.length === 5;
  });
});

test("a queue that is away costs bounded memory: engagements beyond the bound are dropped and counted", async () => {
  const reports = new Reports();
  const telemetry = new CountingTelemetry();
  const engagements = new Engagements({ reports, telemetry });
  for (let i = 0; i < engineLimits.engagementsPendingMax + 5; i += 1) {
    engagements.note({ ...click, tenantId: `t${i % 5}`, jobId: String(i) });
  }
  expect(reports.taken).toHaveLength(engineLimits.engagementsPendingMax);
  expect(telemetry.dropped).toHaveLength(5);
  expect(telemetry.dropped[0]).toEqual(["engagements_dropped", { type: "clicked" }]);
  reports.recordAll();
  await eventually("there is room again", () => {
    engagements.note(click);
    return reports.taken.length > engineLimits.engagementsPendingMax;
  });
});

test("one tenant's readers take a quarter of the room, and leave the rest to those of others", async () => {
  const reports = new Reports();
  const telemetry = new CountingTelemetry();
  const engagements = new Engagements({ reports, telemetry });
  const share = engineLimits.engagementsPendingMax / 4;
  for (let i = 0; i < share + 5; i += 1) engagements.note({ ...click, jobId: String(i) });
  expect([reports.taken.length, telemetry.dropped.length]).toEqual([share, 5]);
  engagements.note({ ...click, tenantId: "other" });
  expect(reports.taken.length).toBe(share + 1);
  reports.recordAll();
  await eventually("the tenant has room again", () => {
    engagements.note(click);
    return reports.taken.length > share + 1;
  });
});
