import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import ts from "typescript";

/*
 * `bun infra/check-prose.ts` counts habits that make comments hard to read, and functions whose names begin with no verb. It
 * fails where there are more than the bounds allow. `--list [path ...]` prints each place under these paths, or everywhere.
 */

const ROOT = resolve(import.meta.dir, "..");
const SOURCES = "{src,test,bench,infra,clients}/**/*.{ts,tsx,lua}";
const NOT_OURS = /(^|\/)node_modules\//;

interface Habit {
  readonly name: string;
  readonly pattern: RegExp;
  /** Among 1,000 sentences of comments, or 1,000 names of functions. */
  readonly perThousand: number;
}

const IN_COMMENTS: readonly Habit[] = [
  { name: "begins with What, Who, Whose or Those", pattern: /^(What|Who|Whose|Those)\b/, perThousand: 5 },
  { name: "says nobody or nothing", pattern: /\b(nobody|nothing)\b/i, perThousand: 5 },
  { name: 'begins with "Of a" or "Of the"', pattern: /^Of (an?|the)\b/, perThousand: 1 },
];

const IN_NAMES: readonly Habit[] = [{ name: "a function's name ends in Of", pattern: /[a-z]Of$/, perThousand: 0 }];

export interface Text {
  readonly line: number;
  readonly text: string;
}

export interface Prose {
  /** Sentences of comments. */
  readonly sentences: readonly Text[];
  /** Names of functions and methods. */
  readonly names: readonly Text[];
}

/** Reads one file. */
export function readProse(path: string, source: string): Prose {
  if (path.endsWith(".lua")) return { sentences: splitSentences(readLuaComments(source)), names: [] };
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true);
  const names: Text[] = [];
  const comments = new Map<number, Text>();
  const lineAt = (position: number) => file.getLineAndCharacterOfPosition(position).line + 1;
  const visit = (node: ts.Node) => {
    if (ts.isJSDoc(node) || ts.isJsxText(node)) return;
    const name = nameOfFunction(node);
    if (name !== null) names.push({ line: lineAt(node.getStart(file)), text: name });
    for (const { pos, end } of ts.getLeadingCommentRanges(source, node.pos) ?? []) {
      comments.set(pos, { line: lineAt(pos), text: source.slice(pos, end) });
    }
    for (const { pos, end } of ts.getTrailingCommentRanges(source, node.end) ?? []) {
      comments.set(pos, { line: lineAt(pos), text: source.slice(pos, end) });
    }
    for (const child of node.getChildren(file)) visit(child);
  };
  visit(file);
  const inOrder = Array.from(comments.values()).toSorted((left, right) => left.line - right.line);
  return { sentences: splitSentences(joinLines(inOrder)), names };
}

function nameOfFunction(node: ts.Node): string | null {
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) return node.name?.getText() ?? null;
  if (!ts.isVariableDeclaration(node) || node.initializer === undefined) return null;
  const isFunction = ts.isArrowFunction(node.initializer) || ts.isFunctionExpression(node.initializer);
  return isFunction ? node.name.getText() : null;
}

function readLuaComments(source: string): readonly Text[] {
  const lines = source.split("\n").flatMap((text, at) => {
    const comment = /^\s*--+ ?(.*)$/.exec(text)?.[1];
    return comment === undefined ? [] : [{ line: at + 1, text: `// ${comment}` }];
  });
  return joinLines(lines);
}

/** Joins the `//` comments of lines that follow each other, and takes the marks away. */
function joinLines(comments: readonly Text[]): readonly Text[] {
  const joined: { line: number; lastLine: number; text: string }[] = [];
  for (const { line, text } of comments) {
    const last = joined.at(-1);
    const bare = text
      .replace(/^\/\*\**|\*\/$/g, "")
      .replace(/^\/\/+ ?/, "")
      .replaceAll(/\n\s*\* ?/g, "\n");
    if (last?.lastLine === line - 1 && text.startsWith("//")) {
      last.text += ` ${bare}`;
      last.lastLine = line;
    } else {
      joined.push({ line, lastLine: text.startsWith("//") ? line : -1, text: bare });
    }
  }
  return joined;
}

/** Sentences end with a full stop, a question mark, or a blank line. Instructions to tools do not count. */
function splitSentences(comments: readonly Text[]): readonly Text[] {
  return comments.flatMap(({ line, text }) =>
    text
      .split(/(?<=[.?!])\s+|\n\s*\n|\n(?=\s*- )/)
      .map((sentence) => sentence.replaceAll(/\s+/g, " ").replace(/^ ?- /, "").trim())
      .filter((sentence) => /[a-z] [a-z]/i.test(sentence) && !/^(@|biome-|oxlint-|eslint-|#)/.test(sentence))
      .map((sentence) => ({ line, text: sentence })),
  );
}

interface Place extends Text {
  readonly path: string;
}

interface Count {
  readonly habit: Habit;
  readonly places: readonly Place[];
  readonly among: number;
}

function count(files: readonly (Prose & { readonly path: string })[]): readonly Count[] {
  const inFiles = (member: "sentences" | "names") =>
    files.flatMap((file) => file[member].map((text) => ({ ...text, path: file.path })));
  const [sentences, names] = [inFiles("sentences"), inFiles("names")];
  return [
    ...IN_COMMENTS.map((habit) => ({ habit, all: sentences })),
    ...IN_NAMES.map((habit) => ({ habit, all: names })),
  ].map(({ habit, all }) => ({ habit, among: all.length, places: all.filter(({ text }) => habit.pattern.test(text)) }));
}

/** Returns the number of places per 1,000. */
function rate({ places, among }: Count): number {
  return among === 0 ? 0 : (1_000 * places.length) / among;
}

if (import.meta.main) {
  const [isList, paths] = [process.argv.includes("--list"), process.argv.slice(2).filter((word) => word !== "--list")];
  const found = Array.from(new Bun.Glob(SOURCES).scanSync({ cwd: ROOT }))
    .filter((path) => !NOT_OURS.test(path) && (paths.length === 0 || paths.some((start) => path.startsWith(start))))
    .toSorted();
  const counts = count(found.map((path) => ({ path, ...readProse(path, readFileSync(resolve(ROOT, path), "utf8")) })));
  for (const one of counts) {
    if (isList)
      for (const { path, line, text } of one.places) console.log(`${path}:${line}: ${one.habit.name}: ${text}`);
  }
  for (const one of counts) {
    console.log(`${rate(one).toFixed(1)} in 1,000 (at most ${one.habit.perThousand}): ${one.habit.name}`);
  }
  process.exit(counts.every((one) => rate(one) <= one.habit.perThousand) ? 0 : 1);
}
