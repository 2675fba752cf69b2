import { median } from "../load/latency.ts";
import { SIGN_VARIANTS, type SignRun, signRound } from "../load/sign.ts";
import { computeRatios, describeRatios } from "./ratios.ts";
import type { SectionOptions } from "./section.ts";

export async function sign({ rounds, seconds }: SectionOptions): Promise<unknown> {
  const runs = new Map(SIGN_VARIANTS.map((variant) => [variant, [] as SignRun[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const variant of SIGN_VARIANTS) runs.get(variant)?.push(await signRound(variant, seconds));
  }
  console.log(`\nSign: one Apple pass over and over, four in flight, ${rounds} rounds of ${seconds} s\n`);
  console.table([...runs].map(([variant, all]) => buildRow(variant, all)));
  const ratios = computeRatios(runs.get("waybill") ?? [], runs.get("passkit-generator") ?? [], (one) => one.perSecond);
  console.log(`waybill / passkit-generator: ${describeRatios(ratios)}`);
  return { rounds: Object.fromEntries(runs), ratios };
}

function buildRow(variant: string, all: readonly SignRun[]): Record<string, string | number> {
  const delay = (of: (run: SignRun) => number) => median(all.map(of));
  const { p50, p99, max } = {
    p50: delay((run) => run.delayMs.p50),
    p99: delay((run) => run.delayMs.p99),
    max: delay((run) => run.delayMs.max),
  };
  return {
    signer: variant,
    "passes/s": median(all.map((run) => run.perSecond)),
    "CPU ms a pass": median(all.map((run) => run.cpuMs)),
    "event-loop delay p50 / p99 / max": `${p50} / ${p99} / ${max} ms`,
  };
}
