import { expect, test } from "bun:test";
import type { Series } from "../../src/domain/telemetry.ts";
import { Metrics } from "../../src/runtime/telemetry/metrics.ts";
import { summedMetrics } from "../../src/runtime/telemetry/summed-metrics.ts";

/** The values that a scraper reads of the metric. */
async function read(metrics: Metrics, name: string): Promise<readonly string[]> {
  const lines = (await metrics.text()).split("\n");
  return lines.filter((line) => line.startsWith(`waybill_${name}`));
}

test("what is no number is written as the format has it", async () => {
  const metrics = new Metrics();
  metrics.gauge("mean", Number.NaN, {});
  expect(await read(metrics, "mean")).toEqual(["waybill_mean NaN"]);
  const parts = await metrics.parts();
  expect(await summedMetrics([parts])).toContain("waybill_mean NaN\n");
});

test("a renamed metric is served under its former name, too", async () => {
  const metrics = new Metrics();
  metrics.count("queue_calls_failed", { call: "pull" }, 2);
  metrics.gauge("event_store_up", 1, {});
  metrics.time("event_write_seconds", 0.02, {});
  const text = await metrics.text();
  expect(text).toContain("# HELP waybill_ledger_up Former name of waybill_event_store_up, until 1.2.\n");
  for (const line of [
    'waybill_journal_calls_failed_total{call="pull"} 2',
    "waybill_ledger_up 1",
    "# TYPE waybill_ledger_write_seconds histogram",
    'waybill_ledger_write_seconds_bucket{le="0.025"} 1',
    "waybill_ledger_write_seconds_count 1",
  ]) {
    expect(text).toContain(`${line}\n`);
    const present = line
      .replace("journal", "queue")
      .replace("ledger_up", "event_store_up")
      .replace("ledger_write", "event_write");
    expect(text).toContain(`${present}\n`);
  }
  // The runtime's own metrics have one name each.
  expect(text.match(/^# TYPE waybill_process_cpu_seconds_total /gm)).toHaveLength(1);
});

const ROUNDS: Readonly<Record<string, { readonly values: readonly Series[]; readonly shown: readonly string[] }>> = {
  labelled: {
    values: [
      [{ tenant: "acme", channel: "email" }, 3],
      [{ tenant: "club", channel: "email" }, 1],
    ],
    shown: ['waybill_depth{tenant="acme",channel="email"} 3', 'waybill_depth{tenant="club",channel="email"} 1'],
  },
  fewer: {
    values: [[{ tenant: "club", channel: "email" }, 2]],
    shown: ['waybill_depth{tenant="club",channel="email"} 2'],
  },
  bare: { values: [[{}, 7]], shown: ["waybill_depth 7"] },
  none: { values: [], shown: [] },
};

const ORDERS = [
  ["labelled", "none", "labelled", "fewer", "none", "none"],
  ["none", "fewer", "labelled"],
  ["bare", "none", "bare", "none"],
] as const;

test.each(ORDERS.map((order) => [order.join(", "), order] as const))(
  "series are what was measured last, in every order: %s",
  async (_title, order) => {
    const metrics = new Metrics();
    for (const round of order) {
      metrics.series("depth", ROUNDS[round]?.values ?? []);
      expect([round, await read(metrics, "depth")]).toEqual([round, [...(ROUNDS[round]?.shown ?? [])]]);
    }
  },
);
