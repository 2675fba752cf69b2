import { expect, test } from "bun:test";
import { within } from "../../src/domain/clock.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const never = () => new Promise<never>(() => {});

test("an answer in time is the answer, and what asked for it is told that it is over", async () => {
  const clock = new VirtualClock();
  let over: AbortSignal | null = null;
  const answer = within({ clock, ms: 100, late: () => "late" }, async (signal) => {
    over = signal;
    return "answer";
  });
  expect(await answer).toBe("answer");
  expect(over).toMatchObject({ aborted: true });
  await clock.advance(1_000);
});

test("a failure in time is the failure", async () => {
  const asked = within({ clock: new VirtualClock(), ms: 100, late: () => "late" }, () =>
    Promise.reject(new Error("no")),
  );
  expect(await asked.catch(String)).toBe("Error: no");
});

test("what is late is abandoned, and its end is nobody's", async () => {
  const clock = new VirtualClock();
  const abandoned = Promise.withResolvers<string>();
  const answer = within({ clock, ms: 100, late: () => "late" }, () => abandoned.promise);
  await clock.advance(100);
  expect(await answer).toBe("late");
  abandoned.reject(new Error("after all"));
  await clock.advance(1);
});

test("being late can be a failure", async () => {
  const clock = new VirtualClock();
  const late = () => {
    throw new Error("too late");
  };
  const failure = within({ clock, ms: 100, late }, never).catch(String);
  await clock.advance(100);
  expect(await failure).toBe("Error: too late");
});
