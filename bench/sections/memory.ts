import { postfixMissing } from "../../test/support/postfix.ts";
import { burst, target } from "../load/burst.ts";
import { drive } from "../load/driver.ts";
import { round } from "../load/latency.ts";
import { computeSlope, type MemorySample, measureMemory, watchMemory } from "../load/memory-watch.ts";
import { startSmtpSink } from "../load/smtp-sink.ts";
import { waybillSide } from "../load/whole-sides.ts";
import type { SectionOptions } from "./section.ts";

const TENANTS = 20;
const MIB = 1024 * 1024;
const BURST_LOOK_MS = 100;
const LOAD_LOOK_MS = 2_000;
/** After a burst, time for freed memory to be returned. */
const REST_MS = 10_000;

/** Memory of the process tree at rest, in a burst and after it, and its growth under a sustained load. */
export async function memory({ rate, minutes, smoke }: SectionOptions): Promise<unknown> {
  const missing = postfixMissing();
  if (missing !== null) {
    console.log(`\nMemory: left out. ${missing}`);
    return { missing };
  }
  const mails = smoke ? 100 : Number(process.env["MEMORY_MAILS"] ?? 60_000);
  const sink = await startSmtpSink();
  const side = await waybillSide({ sink, tenants: TENANTS, isSigned: false });
  const running = await side.start();
  try {
    const atRest = await measureMemory(running);
    const inBurst = await watchMemory(running, BURST_LOOK_MS, burst(running, sink, mails));
    await Bun.sleep(smoke ? 0 : REST_MS);
    const after = await measureMemory(running);
    const seconds = smoke ? 1 : minutes * 60;
    const load = drive({ ...target(running), seconds, rate, connections: 64 });
    const underLoad = await watchMemory(running, smoke ? 200 : LOAD_LOOK_MS, load);
    // The first quarter fills caches, and the finished jobs of fifteen minutes.
    const settled = underLoad.slice(Math.floor(underLoad.length / 4));
    const growth = computeSlope(settled, ({ rss }) => rss);
    console.log(`\nMemory: a burst of ${mails} mails, then ${rate}/s for ${round(seconds / 60)} minutes\n`);
    console.table([
      buildRow("at rest", atRest),
      buildRow("peak of the burst", findPeak(inBurst)),
      buildRow("after it", after),
      buildRow("peak of the load", findPeak(underLoad)),
      buildRow("end of the load", underLoad.at(-1) ?? after),
    ]);
    console.log(`growth of the processes in the last three quarters: ${round((growth * 3600) / MIB)} MiB an hour`);
    return { mails, rate, seconds, atRest, peak: findPeak(inBurst), after, underLoad, growthPerHour: growth * 3600 };
  } finally {
    await running.stop();
    await side.end();
    await sink.stop();
  }
}

function findPeak(samples: readonly MemorySample[]): MemorySample {
  const largest = (of: (sample: MemorySample) => number) => Math.max(...samples.map(of));
  return { atMs: 0, rss: largest(({ rss }) => rss), redis: largest(({ redis }) => redis) };
}

function buildRow(when: string, { rss, redis }: MemorySample) {
  return { when, "processes, MiB": Math.round(rss / MIB), "Redis, MiB": round(redis / MIB, 1) };
}
