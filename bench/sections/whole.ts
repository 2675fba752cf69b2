import { describeLatency } from "../load/driver.ts";
import { round } from "../load/latency.ts";
import { wholePath } from "../load/whole-path.ts";
import type { SectionOptions } from "./section.ts";

export async function whole({ seconds, rate }: SectionOptions): Promise<unknown> {
  const result = await wholePath(seconds, rate);
  console.log(`\nWhole path: the embedded default at ${rate} requests/s for ${seconds} s, open loop\n`);
  console.table([
    {
      "accepted/s": result.accept.perSecond,
      "accept p50 / p99": describeLatency(result.accept.latencyMs),
      "sent p50 / p99": describeLatency(result.sentMs),
      jobs: result.jobs,
      "s to the last event": round(result.settledSeconds),
    },
  ]);
  return result;
}
