import { expect, test } from "bun:test";
import { DeviceLog } from "../../../../src/channels/wallet/devices/device-log.ts";
import { walletLimits } from "../../../../src/channels/wallet/limits.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";

function open(keptMax = 10) {
  const now = { ms: 5_000 };
  const telemetry = new QuietTelemetry();
  const clock = { ...systemClock, nowMs: () => 0, monotonicMs: () => now.ms };
  return { log: new DeviceLog({ clock, telemetry, keptMax }), telemetry, now };
}

test("a flood of complaints is cut to so many lines a call and a minute, and the next minute has room again", () => {
  const { log, telemetry, now } = open();
  const flood = Array.from({ length: 100 }, (_, at) => `${at} ${"x".repeat(1_000)}`);
  log.take(flood);
  expect(telemetry.lines).toHaveLength(walletLimits.deviceLogLinesMax);
  // Strangers, for ten minutes, a hundred lines a second.
  for (let second = 0; second < 600; second += 1) {
    log.take(flood);
    now.ms += 1_000;
  }
  expect(telemetry.lines.length).toBeLessThanOrEqual(11 * walletLimits.deviceLogLinesPerMinute);
  now.ms += 60_000;
  log.take(["after"]);
  expect(log.latest(1)).toEqual([{ logged_at: "1970-01-01T00:00:00.000Z", message: "after" }]);
});

test("what a terminal would act upon, or pass for another line, is not written", () => {
  const { log } = open();
  log.take(["\u001b[2Jgone\r\nERROR all is lost\u2028\u202etxt\ud800"]);
  expect(log.latest(1)).toMatchObject([{ message: " [2Jgone ERROR all is lost txt " }]);
});

test("the device that a phone names in its complaint is not written", () => {
  const { log, telemetry } = open();
  log.take([
    "Register task (for device 19121d6b570b31a3fa56dbd45411c933, serial 12) encountered error: Authentication failure",
  ]);
  const message = "Register task (for device (id), serial 12) encountered error: Authentication failure";
  expect(log.latest(1)).toMatchObject([{ message }]);
  expect(JSON.stringify(telemetry.lines)).not.toContain("19121d6b");
});

test("an endless line is cut, and only the latest lines are kept", () => {
  const { log } = open(2);
  log.take(["one", "two", "x".repeat(100_000)]);
  expect(log.latest(10).map(({ message }) => message)).toEqual(["x".repeat(walletLimits.deviceLogLineCharsMax), "two"]);
});

test("nothing is kept where nobody reads it", () => {
  const { log } = open(0);
  log.take(["one"]);
  expect(log.latest(10)).toEqual([]);
});
