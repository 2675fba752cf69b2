import { usedBytes } from "./bench-redis.ts";
import { processTrees } from "./processes.ts";
import type { RunningSide } from "./whole-sides.ts";

/** Memory of a side at one moment, in bytes. */
export interface MemorySample {
  readonly atMs: number;
  /** Resident memory of all processes except Redis, according to Linux. */
  readonly rss: number;
  /** Memory that Redis reports. */
  readonly redis: number;
}

export async function measureMemory(side: RunningSide): Promise<MemorySample> {
  const uses = await processTrees(side.pids);
  const rss = uses.reduce((sum, use) => sum + (use.label === "Redis" ? 0 : use.rssBytes), 0);
  return { atMs: performance.now(), rss, redis: await usedBytes({ client: side.redis }) };
}

/** Samples at intervals while `work` runs. */
export async function watchMemory(side: RunningSide, everyMs: number, work: Promise<unknown>): Promise<MemorySample[]> {
  const samples: MemorySample[] = [];
  let isOver = false;
  const over = work.finally(() => (isOver = true));
  while (!isOver) {
    samples.push(await measureMemory(side));
    await Promise.race([Bun.sleep(everyMs), over]);
  }
  await over;
  return samples;
}

/** Bytes per second, by least squares. */
export function computeSlope(samples: readonly MemorySample[], of: (sample: MemorySample) => number): number {
  const n = samples.length;
  const meanAt = samples.reduce((sum, { atMs }) => sum + atMs, 0) / n;
  const meanOf = samples.reduce((sum, sample) => sum + of(sample), 0) / n;
  let above = 0;
  let below = 0;
  for (const sample of samples) {
    above += (sample.atMs - meanAt) * (of(sample) - meanOf);
    below += (sample.atMs - meanAt) ** 2;
  }
  return below === 0 ? 0 : (above / below) * 1000;
}
