import { expect, test } from "bun:test";
import { TextCache } from "../../../src/channels/email/content/text-cache.ts";

function createCache(charsMax: number) {
  const made: string[] = [];
  const cache = new TextCache(charsMax, (text) => {
    made.push(text);
    return { text };
  });
  return { cache, made };
}

test("a text is processed once", () => {
  const { cache, made } = createCache(100_000);
  expect(cache.get("a")).toBe(cache.get("a"));
  expect(made).toEqual(["a"]);
});

test("the least recently used is forgotten first", () => {
  const { cache, made } = createCache(16 * 300);
  const texts = Array.from({ length: 18 }, (_, n) => `text ${n}`);
  for (const text of texts) {
    cache.get(text);
    cache.get("kept in use");
  }
  made.length = 0;
  for (const text of ["kept in use", "text 17", "text 0"]) cache.get(text);
  expect(made).toEqual(["text 0"]);
});

test("a huge text is not kept and evicts nothing", () => {
  const { cache, made } = createCache(10_000);
  cache.get("small");
  for (const _ of [1, 2]) cache.get("x".repeat(9_000));
  cache.get("small");
  expect(made.map((text) => text.length)).toEqual([5, 9_000, 9_000]);
});
