import { postfixMissing } from "../../test/support/postfix.ts";
import { type Burst, burst } from "../load/burst.ts";
import { median, round } from "../load/latency.ts";
import { startSmtpSink } from "../load/smtp-sink.ts";
import { type Side, waybillSide } from "../load/whole-sides.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

/** The same total number of messages, from one tenant or from thousands. */
export async function tenants({ rounds, smoke }: SectionOptions): Promise<unknown> {
  const missing = postfixMissing();
  if (missing !== null) {
    console.log(`\nTenants: left out. ${missing}`);
    return { missing };
  }
  const mails = smoke ? 100 : Number(process.env["TENANTS_MAILS"] ?? 20_000);
  const counts = smoke ? [10] : [1, 1_000, 10_000];
  const sink = await startSmtpSink();
  const sides = new Map<number, Side>();
  for (const count of counts) sides.set(count, await waybillSide({ sink, tenants: count, isSigned: false }));
  const first = new Map(counts.map((count) => [count, [] as Burst[]]));
  const again = new Map(counts.map((count) => [count, [] as Burst[]]));
  try {
    for (let i = 0; i < Math.max(1, Math.ceil(rounds / 2)); i += 1) {
      for (const [count, side] of sides) {
        const running = await side.start();
        // Tenants that are new to the process, then the same ones, which it has cached.
        first.get(count)?.push(await burst(running, sink, mails));
        again.get(count)?.push(await burst(running, sink, mails));
        await running.stop();
      }
    }
  } finally {
    for (const side of sides.values()) await side.end();
    await sink.stop();
  }
  console.log(`\nTenants: ${mails} mails in all over 64 connections to smtp-sink, as \`npm start\` comes\n`);
  console.table(counts.flatMap((count) => [buildRow(count, "first", first), buildRow(count, "known", again)]));
  const [one = 1, ...more] = counts;
  const findBursts = (of: number) => again.get(of) ?? [];
  const ratios = Object.fromEntries(
    more.map((count) => [count, computeRatios(findBursts(count), findBursts(one), (run) => run.perSecond)]),
  );
  for (const [count, all] of Object.entries(ratios))
    console.log(`${count} known tenants / one: ${describeRatios(all)}`);
  return { mails, first: Object.fromEntries(first), known: Object.fromEntries(again), ratios };
}

function buildRow(tenants: number, met: "first" | "known", of: ReadonlyMap<number, readonly Burst[]>) {
  const computeMedian = (value: (one: Burst) => number) => round(median((of.get(tenants) ?? []).map(value)), 1);
  return {
    tenants,
    "to the process": met === "first" ? "met for the first time" : "known",
    "mails/s, end to end": computeMedian((one) => one.perSecond),
    "accepted/s": computeMedian((one) => one.acceptedPerSecond),
    "accept p99, ms": computeMedian((one) => one.acceptMs.p99),
    "Redis CPU µs": computeMedian((one) => one.redisMicros),
  };
}
