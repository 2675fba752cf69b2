import { expect, test } from "bun:test";
import { FairTurns, type TurnBounds } from "../../src/domain/fair-turns.ts";

const ALL = Number.POSITIVE_INFINITY;

/** `entered`: whose work comes, in this order. `begun`: whose begins at once, and then whenever the earliest in flight ends. */
const CASES: readonly [what: string, bounds: TurnBounds, entered: string, begun: string][] = [
  ["one at a time, in turn", { all: 1, each: 1 }, "aaabc", "a|a|b|c|a"],
  ["few of one owner while there is room", { all: 4, each: 2 }, "aaab", "aab||a"],
  ["one of each while room is short", { all: 4, each: 4 }, "aaaabc", "aabc||a||a"],
  ["a bound for each owner alone", { all: ALL, each: 2 }, "aaabbb", "aabb|a||b"],
];

test.each(CASES)("turns: %s", async (_, bounds, entered, begun) => {
  const turns = new FairTurns(bounds);
  const ends: (() => void)[] = [];
  const rounds = [""];
  const all = [...entered].map((owner) =>
    turns.inTurn(owner, () => {
      rounds[rounds.length - 1] += owner;
      return new Promise<void>((resolve) => ends.push(resolve));
    }),
  );
  for (let ended = 0; ended < all.length; ended += 1) {
    ends[ended]?.();
    rounds.push("");
    await Bun.sleep(0);
  }
  await Promise.all(all);
  expect(rounds.join("|").replace(/\|+$/, "")).toBe(begun);
});

test("the work's failure is its caller's, and the next one has its turn", async () => {
  const turns = new FairTurns({ all: 1, each: 1 });
  const failed = turns.inTurn("a", () => Promise.reject(new Error("no"))).catch(String);
  const next = turns.inTurn("a", async () => turns.working("a"));
  expect([turns.waiting("a"), await failed, await next]).toEqual([1, "Error: no", 1]);
});
