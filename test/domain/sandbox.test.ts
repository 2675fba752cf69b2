import { expect, test } from "bun:test";
import { FirstTries, MessageRing } from "../../src/domain/channels/sandbox.ts";

const message = (to: string, bytes = 1) => ({ to, bytes, show: () => ({ to }) as never });
const kept = (ring: MessageRing) => ring.messages(null, 99).map(({ to }) => to);

test("the latest messages are kept, as many and as large as the ring takes", () => {
  const many = new MessageRing(3, 1_000);
  for (let at = 1; at <= 20; at += 1) many.add(message(`m-${at}`));
  expect(kept(many)).toEqual(["m-20", "m-19", "m-18"]);
  expect(many.messages(null, 2)).toHaveLength(2);
  expect(many.messages("M-19", 9)).toHaveLength(1);
  expect(many.messages("m-17", 9)).toEqual([]);

  const large = new MessageRing(99, 100);
  for (const [to, bytes] of [
    ["a", 60],
    ["b", 40],
  ] as const)
    large.add(message(to, bytes));
  expect(kept(large)).toEqual(["b", "a"]);
  large.add(message("c", 1));
  expect(kept(large)).toEqual(["c", "b"]);
  large.add(message("larger than the ring", 101));
  expect(kept(large)).toEqual([]);
});

test("what is erased leaves room", () => {
  const ring = new MessageRing(99, 100);
  for (const to of ["a", "b", "A"]) ring.add(message(to, 30));
  expect(ring.erase("a")).toBe(2);
  ring.add(message("c", 70));
  expect(kept(ring)).toEqual(["c", "b"]);
});

test("the first tries of a message are told from later ones, and counted anew after that", () => {
  const tries = new FirstTries(2);
  expect([1, 2, 3, 4].map(() => tries.take("a", 2))).toEqual([true, true, false, true]);
  // Only the latest messages are known.
  tries.take("b", 2);
  tries.take("c", 2);
  expect([tries.take("a", 2), tries.take("a", 2), tries.take("a", 2)]).toEqual([true, true, false]);
});
