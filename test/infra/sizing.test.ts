import { expect, test } from "bun:test";
import { join } from "node:path";
import { ASSUMED, computeSize, FIGURES, withTables } from "../../bench/sizing.ts";

test("the tables of docs/sizing.md are those of the measured figures", async () => {
  const page = await Bun.file(join(import.meta.dir, "../../docs/sizing.md")).text();
  expect(page).toBe(withTables(page));
});

test("ten times the messages need ten times the machines", () => {
  const [small, large] = [computeSize(1_000_000), computeSize(10_000_000)];
  expect(large.peakPerSecond).toBeCloseTo(10 * small.peakPerSecond);
  expect(large.cores.dispatcher).toBeCloseTo(10 * small.cores.dispatcher);
  expect(large.redisGiB).toBeCloseTo(10 * small.redisGiB);
  expect(large.eventStoreGiB).toBeCloseTo(10 * small.eventStoreGiB);
});

test("the number of cores covers the peak, with headroom", () => {
  const { peakPerSecond, cores } = computeSize(86_400_000);
  expect(peakPerSecond).toBe(1_000 * ASSUMED.peakFactor);
  expect(cores.dispatcher * ASSUMED.usedAtPeak).toBeCloseTo((peakPerSecond * FIGURES.micros.dispatcher) / 1_000_000);
});
