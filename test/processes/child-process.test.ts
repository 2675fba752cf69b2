import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Clock } from "../../src/domain/clock.ts";
import { ChildProcess, PING } from "../../src/processes/child-process.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

const COMMAND = [process.execPath, join(import.meta.dir, "hanging-child.ts")];
/** Runs a hundred times as fast. */
const fast: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => systemClock.monotonicMs(),
  setTimer: (ms, run) => systemClock.setTimer(ms / 100, run),
};

test("a child whose event loop hangs is killed", async () => {
  const child = new ChildProcess(COMMAND);
  await child.calls.call(PING, null);
  process.kill(child.pid, "SIGSTOP");
  expect(await child.endWhenHung(fast)).toBeTrue();
  expect(await child.exited).toBe("SIGKILL");
}, 90_000);

test("a child that exits by itself is not reported as hanging", async () => {
  const child = new ChildProcess(COMMAND);
  await child.calls.call(PING, null);
  const isHung = child.endWhenHung(systemClock);
  child.kill();
  expect(await isHung).toBeFalse();
}, 90_000);
