import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/*
 * `bun infra/check-links.ts` follows every link of every Markdown file of the project: a relative one must lead to a file, and
 * its anchor to a heading there. Links to other hosts are checked for their form only, because a check must not need a network.
 */

const ROOT = resolve(import.meta.dir, "..");
const IGNORED = /(^|\/)(node_modules|\.[^/]+|dist)\//;

/** Returns the faults of a page's links, one sentence each. `path`: the page's location; `page`: its text. */
export function brokenLinks(path: string, page: string): readonly string[] {
  return readLinks(page).flatMap(({ target, line }) => {
    const fault = findFault(path, page, target);
    return fault === null ? [] : [`${relative(ROOT, path)}:${line}: ${target} ${fault}`];
  });
}

interface Link {
  readonly target: string;
  readonly line: number;
}

const LINK =
  /\]\((?<inline>[^()\s]+(?:\([^()\s]*\)[^()\s]*)?)(?: "[^"]*")?\)|^\[[^\]]+\]: +(?<named>\S+)|<(?<auto>https?:[^>\s]*)>/g;

function readLinks(page: string): readonly Link[] {
  return prose(page).flatMap((text, at) =>
    Array.from(text.matchAll(LINK), ({ groups = {} }) => ({
      target: groups["inline"] ?? groups["named"] ?? groups["auto"] ?? "",
      line: at + 1,
    })),
  );
}

/** Returns the lines of a page, with code lines and code within a line blanked out. */
function prose(page: string): readonly string[] {
  let fence: string | null = null;
  return page.split("\n").map((line) => {
    const mark: string | undefined = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence !== null && mark?.startsWith(fence) === true) fence = null;
    return fence !== null || mark !== undefined || line.startsWith("    ") ? "" : line.replaceAll(/`[^`]*`/g, "`");
  });
}

function findFault(path: string, page: string, target: string): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return URL.canParse(target) ? null : "is no address";
  const [place = "", anchor] = target.split("#");
  const file = place === "" ? path : join(dirname(path), decodeURIComponent(place));
  if (file === path) return anchor === undefined || readHeadings(page).has(anchor) ? null : NO_HEADING;
  const found = relative(ROOT, file);
  if (found.startsWith("..") || !existsSync(file)) return "leads nowhere";
  if (anchor === undefined) return null;
  if (statSync(file).isDirectory() || !file.endsWith(".md")) return "names a heading of something that has none";
  return readHeadings(readFileSync(file, "utf8")).has(anchor) ? null : NO_HEADING;
}

const NO_HEADING = "names a heading that is not there";

/** Returns the anchors of a page's headings, as GitHub makes them. */
export function readHeadings(page: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  let isCode = false;
  for (const line of page.split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    const title = isCode ? undefined : /^#{1,6} +(.+?)(?: +#+)?$/.exec(line)?.[1];
    if (title === undefined) continue;
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "").replaceAll(" ", "-");
    let anchor = slug;
    for (let nth = 1; anchors.has(anchor); nth += 1) anchor = `${slug}-${nth}`;
    anchors.add(anchor);
  }
  return anchors;
}

if (import.meta.main) {
  const files = Array.from(new Bun.Glob("**/*.md").scanSync({ cwd: ROOT, followSymlinks: false }))
    .filter((file) => !IGNORED.test(`/${file}`))
    .map((file) => join(ROOT, file));
  const broken = files.flatMap((file) => brokenLinks(file, readFileSync(file, "utf8")));
  for (const each of broken) console.log(each);
  if (files.length < 10) console.log(`only ${files.length} pages were found`);
  process.exitCode = broken.length > 0 || files.length < 10 ? 1 : 0;
}
