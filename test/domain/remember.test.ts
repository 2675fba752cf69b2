import { expect, test } from "bun:test";
import { remember } from "../../src/domain/remember.ts";

const isOver = (value: number) => value < 0;
type Entries = readonly (readonly [string, number])[];

const CASES: readonly [
  string,
  before: Entries,
  put: readonly [string, number],
  after: Entries,
  removed: number | undefined,
][] = [
  [
    "takes a new key last",
    [["a", 1]],
    ["b", 2],
    [
      ["a", 1],
      ["b", 2],
    ],
    undefined,
  ],
  [
    "puts a known key last again",
    [
      ["a", 1],
      ["b", 2],
    ],
    ["a", 3],
    [
      ["b", 2],
      ["a", 3],
    ],
    undefined,
  ],
  [
    "removes the oldest where it is full",
    [
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ],
    ["d", 4],
    [
      ["b", 2],
      ["c", 3],
      ["d", 4],
    ],
    1,
  ],
  [
    "removes what is over, up to the first that is not",
    [
      ["a", -1],
      ["b", 2],
      ["c", -3],
    ],
    ["d", 4],
    [
      ["b", 2],
      ["c", -3],
      ["d", 4],
    ],
    -1,
  ],
];

test.each(CASES)("a bounded map %s", (_, before, [key, value], after, removed) => {
  const map = new Map(before);
  expect(remember(map, { key, value, max: 3, isOver })).toBe(removed);
  expect([...map]).toEqual([...after].map(([name, its]) => [name, its]));
});
