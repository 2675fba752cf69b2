import { expect, test } from "bun:test";
import { WriteGate } from "../../src/events/write-gate.ts";

const never = new AbortController().signal;

test("a hold begins when nothing passes any more, and nothing passes while it lasts", async () => {
  const gate = new WriteGate();
  const seen: string[] = [];
  const [first, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const writing = gate.pass(async () => {
    await first.promise;
    seen.push("written before");
  }, never);
  const holding = gate.hold(async () => {
    seen.push("held");
    await held.promise;
  });
  const later = gate.pass(async () => void seen.push("written later"), never);
  first.resolve();
  await writing;
  held.resolve();
  await Promise.all([holding, later]);
  expect(seen).toEqual(["written before", "held", "written later"]);
});

test("what is held back is not written if its caller gives up meanwhile", async () => {
  const gate = new WriteGate();
  const [held, caller] = [Promise.withResolvers<void>(), new AbortController()];
  const holding = gate.hold(() => held.promise);
  const seen: string[] = [];
  const late = gate.pass(async () => void seen.push("written"), caller.signal);
  caller.abort();
  held.resolve();
  await holding;
  await expect(late).rejects.toThrow();
  expect(seen).toEqual([]);
});

test("holds come one after the other, and one that fails ends", async () => {
  const gate = new WriteGate();
  const failing = gate.hold(() => Promise.reject(new Error("no")));
  await expect(failing).rejects.toThrow("no");
  const seen: number[] = [];
  await Promise.all([1, 2, 3].map((n) => gate.hold(async () => void seen.push(n))));
  expect(seen).toEqual([1, 2, 3]);
});
