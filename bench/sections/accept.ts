import { type AcceptRound, type AcceptTarget, acceptTargets } from "../load/accept.ts";
import { describeLatency } from "../load/driver.ts";
import { median } from "../load/latency.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

export async function accept(options: SectionOptions): Promise<unknown> {
  const { targets, stop } = await acceptTargets();
  const report: Record<string, unknown> = {};
  for (const connections of options.smoke ? [64] : [64, 256])
    report[`connections ${connections}`] = await acceptWith(targets, connections, options);
  await stop();
  return report;
}

async function acceptWith(targets: readonly AcceptTarget[], connections: number, { rounds, seconds }: SectionOptions) {
  const runs = new Map(targets.map((target) => [target.name, [] as AcceptRound[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const target of targets) runs.get(target.name)?.push(await target.round({ connections, seconds, rate: null }));
  }
  const perSecond = (name: AcceptTarget["name"]) => (runs.get(name) ?? []).map((one) => one.perSecond);
  // An open loop at half of the baseline's throughput: latency without its own queue.
  const half = Math.max(10, Math.round(median(perSecond("bullmq")) / 2));
  const open = new Map<string, AcceptRound>();
  for (const target of targets) open.set(target.name, await target.round({ connections, seconds, rate: half }));

  console.log(`\nAccept: POST /v1/send/email, ${connections} connections, ${rounds} rounds of ${seconds} s\n`);
  console.table([...runs].map(([name, all]) => acceptRow(name, all, { half, calm: open.get(name) })));
  const besideBullmq = (name: AcceptTarget["name"]) =>
    computeRatios(runs.get(name) ?? [], runs.get("bullmq") ?? [], (one) => one.perSecond);
  const ratios = { waybill: besideBullmq("waybill"), lean: besideBullmq("lean") };
  console.log(`waybill / bullmq: ${describeRatios(ratios.waybill)}`);
  console.log(`the same script behind a bare route / bullmq: ${describeRatios(ratios.lean)}`);
  return { rounds: Object.fromEntries(runs), openLoop: Object.fromEntries(open), ratios };
}

function acceptRow(
  name: string,
  all: readonly AcceptRound[],
  { half, calm }: { readonly half: number; readonly calm: AcceptRound | undefined },
): Record<string, string | number> {
  return {
    server: name,
    "requests/s": median(all.map((one) => one.perSecond)),
    "p50 / p99": `${median(all.map((one) => one.latencyMs.p50))} / ${median(all.map((one) => one.latencyMs.p99))} ms`,
    [`p50 / p99 at ${half}/s, open loop`]: calm === undefined ? "" : describeLatency(calm.latencyMs),
    "server CPU µs": median(all.map((one) => one.serverMicros)),
    "Redis CPU µs": median(all.map((one) => one.redisMicros)),
    "Redis bytes a job": median(all.map((one) => one.bytesPerJob ?? Number.NaN)),
    refused: all.reduce((sum, one) => sum + one.refused, 0),
  };
}
