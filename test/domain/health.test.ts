import { expect, test } from "bun:test";
import { HealthWatch } from "../../src/domain/health.ts";
import { LONGEST_WAITS } from "../support/longest-waits.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

test("a part that is away is tried by one caller at a time, from every second to every half a minute", async () => {
  const clock = new VirtualClock();
  const telemetry = new QuietTelemetry();
  const messages = { down: "it is away", up: "it is back" };
  const watch = new HealthWatch({
    clock,
    random: LONGEST_WAITS,
    telemetry,
    gauge: "part_up",
    messages,
    failuresMin: 2,
  });
  watch.failed("no answer");
  expect([watch.health.up, watch.mayTry()]).toEqual([true, true]);
  watch.failed("no answer");
  expect([watch.health.up, watch.mayTry()]).toEqual([false, false]);
  const waits: number[] = [];
  for (let tries = 0; tries < 7; tries += 1) {
    let seconds = 0;
    for (; !watch.mayTry(); seconds += 1) await clock.advance(1_000);
    waits.push(seconds);
    expect(watch.mayTry()).toBe(false);
    watch.failed("no answer");
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30]);
  // A part that is being tried may never report.
  await clock.advance(30_000);
  expect(watch.mayTry()).toBe(true);
  await clock.advance(59_999);
  expect(watch.mayTry()).toBe(false);
  await clock.advance(1);
  expect(watch.mayTry()).toBe(true);
  watch.calledOff();
  expect(watch.mayTry()).toBe(true);
  watch.succeeded();
  expect([watch.health.up, watch.mayTry(), watch.mayTry()]).toEqual([true, true, true]);
  expect(telemetry.lines).toEqual(["error: it is away", "info: it is back"]);
});
