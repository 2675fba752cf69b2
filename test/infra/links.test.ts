import { expect, test } from "bun:test";
import { join } from "node:path";
import { brokenLinks, readHeadings } from "../../infra/check-links.ts";

const PAGE = join(import.meta.dir, "../../docs/a-page.md");

test("a link is followed to its file and its heading, and what leads nowhere is named with its line", () => {
  const page = [
    "# A page, with `code`",
    "[there](sending.md) [a heading](sending.md#what-202-means) [here](#a-page-with-code) [a folder](design)",
    "[gone](nothing.md)",
    "[no such heading](sending.md#nothing) <https://example.com/> [outside](../../../etc/passwd)",
    "[no address](https://)",
    "[named]: nothing.md",
    "`[code](nothing.md)`",
    "```sh",
    "[code](nothing.md)",
    "```",
    "    [code](nothing.md)",
  ].join("\n");
  expect(brokenLinks(PAGE, page)).toEqual([
    "docs/a-page.md:3: nothing.md leads nowhere",
    "docs/a-page.md:4: sending.md#nothing names a heading that is not there",
    "docs/a-page.md:4: ../../../etc/passwd leads nowhere",
    "docs/a-page.md:5: https:// is no address",
    "docs/a-page.md:6: nothing.md leads nowhere",
  ]);
});

test("headings have the anchors that GitHub gives them", () => {
  const page = "# One: *two*, `three_four`!\n## Same\n## Same\n```\n# no heading\n```\n### [A link](x.md) – and a dash";
  expect(Array.from(readHeadings(page))).toEqual(["one-two-three_four", "same", "same-1", "a-link--and-a-dash"]);
});
