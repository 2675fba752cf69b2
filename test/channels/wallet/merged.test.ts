import { expect, test } from "bun:test";
import { mergedGoogle } from "../../../src/channels/wallet/request/merged.ts";

test("an item is laid over the first with its key, and those without one replace the former ones without", () => {
  const under = { messages: [{ id: "a", body: "1" }, { id: "a", body: "2" }, "text", { body: "3" }] };
  const over = { messages: [{ id: "a", header: "h" }, { id: "b" }, { body: "4" }, { id: null }] };
  expect(mergedGoogle(under, over)["messages"]).toEqual([
    { id: "a", body: "1", header: "h" },
    { id: "a", body: "2" },
    { id: "b" },
    { body: "4" },
    { id: null },
  ]);
});

test("a list without a single key replaces the whole list, and an empty one changes nothing", () => {
  let held: Readonly<Record<string, unknown>> = {};
  for (const gate of ["A", "B", "C"]) {
    held = mergedGoogle(held as never, {
      textModulesData: [{ header: "Gate", body: gate }],
      imageModulesData: [{ mainImage: { sourceUri: { uri: `https://a.example/${gate}.png` } } }],
    });
  }
  expect(held).toEqual({
    textModulesData: [{ header: "Gate", body: "C" }],
    imageModulesData: [{ mainImage: { sourceUri: { uri: "https://a.example/C.png" } } }],
  });
  const named = { textModulesData: [{ id: "gate", body: "A" }] };
  expect(mergedGoogle(named, { textModulesData: [{ body: "B" }] })["textModulesData"]).toEqual([{ body: "B" }]);
  expect(mergedGoogle(named, { textModulesData: [] })).toEqual(named);
});

test("two lists of 50,000 items are merged in time", () => {
  const list = (name: string) => ({ messages: Array.from({ length: 50_000 }, (_, at) => ({ id: `${name}${at}` })) });
  expect(mergedGoogle(list("a"), list("b"))["messages"]).toHaveLength(100_000);
}, 5_000);
