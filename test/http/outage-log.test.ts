import { expect, test } from "bun:test";
import type { Json } from "../../src/domain/texts/json.ts";
import { OutageLog } from "../../src/http/outage-log.ts";

test("an outage writes five lines a second, however many requests fail, and counts the others", () => {
  const lines: Json[] = [];
  let nowMs = 10_000;
  const log = new OutageLog(
    { log: (_level, message, fields = {}) => lines.push({ message, ...fields }) },
    { monotonicMs: () => nowMs },
  );
  for (let request = 0; request < 1_000; request += 1) log.note("a job could not be queued", { request });
  expect(lines).toEqual([0, 1, 2, 3, 4].map((request) => ({ message: "a job could not be queued", request })));
  nowMs += 1_000;
  log.note("a request failed", { request: "the next" });
  log.note("a request failed", { request: "the one after" });
  expect(lines.slice(5)).toEqual([
    { message: "a request failed", request: "the next", more: 995 },
    { message: "a request failed", request: "the one after" },
  ]);
});
