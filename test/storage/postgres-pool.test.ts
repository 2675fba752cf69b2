import { expect, spyOn, test } from "bun:test";
import type { SQL } from "bun";
import { PostgresPool } from "../../src/storage/postgres/postgres-pool.ts";
import { eventually } from "../support/eventually.ts";

test("however often calls miss their answers, at most two pools have connections at one time", async () => {
  let nowMs = 0;
  const clock = spyOn(performance, "now").mockImplementation(() => nowMs);
  try {
    let opened = 0;
    const closes: (() => void)[] = [];
    const connect = () => {
      opened += 1;
      const close = () => new Promise<void>((resolve) => closes.push(resolve));
      return Object.assign(async () => [], { close }) as unknown as SQL;
    };
    const pool = await PostgresPool.open(connect);
    const missed = async () => {
      nowMs += 60_000;
      pool.replace();
      await new Promise((resolve) => setImmediate(resolve));
    };
    await missed();
    await eventually("the first is replaced", () => opened === 2 && closes.length === 1);
    for (let i = 0; i < 5; i += 1) await missed();
    expect(opened).toBe(2);
    closes[0]?.();
    await new Promise((resolve) => setImmediate(resolve));
    await missed();
    expect(opened).toBe(3);
  } finally {
    clock.mockRestore();
  }
});
