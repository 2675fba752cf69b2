import { type DispatchRound, dispatchTargets } from "../load/dispatch.ts";
import { median } from "../load/latency.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

export async function dispatch({ rounds, jobs }: SectionOptions): Promise<unknown> {
  const { targets, stop } = await dispatchTargets();
  const runs = new Map(targets.map((target) => [target.name, [] as DispatchRound[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const target of targets) runs.get(target.name)?.push(await target.round(jobs));
  }
  await stop();
  console.log(`\nDispatch: ${jobs} queued jobs, a channel that does nothing, ${rounds} rounds\n`);
  const rate = (all: readonly DispatchRound[]) => median(all.map((one) => one.perSecond));
  console.table(
    [...runs].map(([worker, all]) => ({
      worker,
      "jobs/s": rate(all),
      "Redis CPU µs": median(all.map((one) => one.redisMicros)),
    })),
  );
  const others = [...runs].filter(([name]) => name !== "waybill");
  const [best = "", bestRuns = []] = others.sort(([, a], [, b]) => rate(b) - rate(a))[0] ?? [];
  const ratios = computeRatios(runs.get("waybill") ?? [], bestRuns, (one) => one.perSecond);
  console.log(`waybill / ${best}: ${describeRatios(ratios)}`);
  return { rounds: Object.fromEntries(runs), best, ratios };
}
