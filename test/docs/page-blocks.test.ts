import { expect, test } from "bun:test";
import { differenceFrom, parseBlocks } from "./page-blocks.ts";

const json = (text: string) => ({ language: "json", text }) as const;

test("an answer of the printed shape passes, and any other is named", () => {
  const printed = json(
    '{"status":"success","job_id":"01a1fd15-0a3f-702b-89f2-ebefa432acf3","items":[{"n":1}],"link":"https://x/…"}',
  );
  const answer = (change: object) =>
    `a line before it\n${JSON.stringify({
      status: "success",
      job_id: "01a204d6-bc8e-72db-83c2-ef95cf1c96ef",
      items: [{ n: 7 }, { n: 8 }],
      link: "https://x/abc",
      ...change,
    })}`;
  expect(differenceFrom(printed, answer({}))).toBeNull();
  for (const change of [
    { status: "failed" },
    { job_id: "1" },
    { items: [] },
    { items: [{}] },
    { link: "http:" },
    { more: 1 },
  ])
    expect(differenceFrom(printed, answer(change))).toContain("the page prints");
  expect(differenceFrom(printed, "nothing")).toContain("no JSON");
  expect(differenceFrom({ language: "text", text: "42 of …\n" }, "17 of 20\n")).toBeNull();
  expect(differenceFrom({ language: "text", text: "true\n" }, "false\n")).toContain("the page prints");
});

test("a block knows its line, what it gives, and why it is not run", () => {
  const page =
    "# Page\n\n```sh\necho 1\n```\n\nIt says\n\n```text\n1\n```\n\n<!-- not run: too dear -->\n```ts\n1;\n```\n\n```json\n{}\n```\n";
  expect(parseBlocks(page)).toEqual([
    { language: "sh", text: "echo 1\n", line: 3, notRun: null, answer: { language: "text", text: "1\n" } },
    { language: "ts", text: "1;\n", line: 13, notRun: "too dear", answer: null },
  ]);
});
