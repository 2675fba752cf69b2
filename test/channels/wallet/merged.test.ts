import { expect, test } from "bun:test";
import { mergedGoogle } from "../../../src/channels/wallet/request/merged.ts";

test("an item is laid over the first with its key, and those without one are added", () => {
  const under = { messages: [{ id: "a", body: "1" }, { id: "a", body: "2" }, "text", { body: "3" }] };
  const over = { messages: [{ id: "a", header: "h" }, { id: "b" }, { body: "4" }, { id: null }] };
  expect(mergedGoogle(under, over)["messages"]).toEqual([
    { id: "a", body: "1", header: "h" },
    { id: "a", body: "2" },
    "text",
    { body: "3" },
    { id: "b" },
    { body: "4" },
    { id: null },
  ]);
});

test("two lists of 50,000 items are merged in time", () => {
  const list = (name: string) => ({ messages: Array.from({ length: 50_000 }, (_, at) => ({ id: `${name}${at}` })) });
  expect(mergedGoogle(list("a"), list("b"))["messages"]).toHaveLength(100_000);
}, 5_000);
