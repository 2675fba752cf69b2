import { expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { untilAnswered } from "../../src/runtime/until-answered.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const SECOND_MS = 1_000;

/** Runs once the call waits. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  await Bun.sleep(0);
  await clock.advance(ms);
}

test("a start waits a minute for a store that is away, and then says so", async () => {
  const clock = new VirtualClock();
  let calls = 0;
  const comes = untilAnswered(clock, async () => {
    calls += 1;
    if (calls < 5) throw new UnavailableError("busy");
    return "here";
  });
  await pass(clock, 10 * SECOND_MS);
  expect(await comes).toBe("here");
  expect(calls).toBe(5);
  const failures: unknown[] = [];
  untilAnswered(clock, () => Promise.reject(new UnavailableError("away"))).catch((error) => failures.push(error));
  await pass(clock, 55 * SECOND_MS);
  expect(failures).toEqual([]);
  await pass(clock, 10 * SECOND_MS);
  expect(failures).toEqual([new UnavailableError("away")]);
});

test("what may have had an effect, and a bug, is not repeated", async () => {
  for (const error of [new TransportError("no answer"), new Error("a bug")]) {
    let calls = 0;
    const call = untilAnswered(new VirtualClock(), () => {
      calls += 1;
      return Promise.reject(error);
    });
    await expect(call).rejects.toBe(error);
    expect(calls).toBe(1);
  }
});
