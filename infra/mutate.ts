import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Dice } from "../test/simulation/dice.ts";
import { APART } from "../test/support/apart.ts";
import { MutantCompiler } from "./mutant-compiler.ts";
import { TestReach } from "./mutant-tests.ts";
import { MutantTrials } from "./mutant-trials.ts";
import { findMutations, type Mutation, planted } from "./mutations.ts";

/*
 * `npm run mutate` plants small mistakes into copies of the sources, one at a time, and runs the tests that are nearest to each
 * until one notices it. Unnoticed mistakes are listed: each needs a test, or makes no difference.
 *
 *   npm run mutate -- [--count N] [--seed S] [--tests K] [--workers W] [--only WORD,…] [--json FILE]
 *
 * `--tests`: how many test files are tried for each mistake, of those that execute its line. A mistake that the compiler
 * refuses could not be made, and is not counted. A test that fails by timeout counts only if it passes right after without the
 * mistake: the machine may have been busy.
 */

/** The folders in which mistakes are planted, with their names in the table. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  engine: ["src/engine"],
  intake: ["src/http", "src/tenants", "src/domain"],
  adapters: ["src/channels"],
  registry: ["src/storage", "src/app"],
  history: ["src/events", "src/webhooks"],
};
/** Sources of pages, generated sources, and those with only declarations and chosen numbers. */
const LEFT_OUT = /migrations|dashboard|\/docs\.ts|schemas?\.ts|tables\.ts|limits\.ts|\.d\.ts|drizzle\.config/;
/** Tests that reach every source, and take long. */
const SLOW = /^test\/(soak|upgrade)\//;
/** Factor of the number of tests to try: so many are checked for whether they execute the line. */
const LOOKED_AT = 3;
const ROOT = join(import.meta.dir, "..");

interface Fate {
  readonly mutation: Mutation;
  readonly room: string;
  /** The test that noticed it, or null. */
  readonly noticedBy: string | null;
  readonly compiles: boolean;
  readonly tried: readonly string[];
}

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "200" },
    seed: { type: "string", default: "1" },
    tests: { type: "string", default: "6" },
    workers: { type: "string", default: "2" },
    only: { type: "string" },
    json: { type: "string" },
  },
});
const dice = new Dice(Number(values.seed));
const tests = Array.from(new Bun.Glob("test/**/*.test.ts").scanSync(ROOT)).filter(
  (file) => !APART.includes(file) && !SLOW.test(file),
);
const reach = new TestReach(ROOT, tests);
const compiler = new MutantCompiler(ROOT);
const trials = new MutantTrials();
const queue = drawn(Number(values.count));
const fates: Fate[] = [];
const copies: string[] = [];
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
process.on("exit", () => {
  trials.endAll();
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
});
await Promise.all(Array.from({ length: Number(values.workers) }, work));
report();

/** Draws this many different mistakes, the same number from each folder. */
function drawn(count: number): { readonly room: string; readonly mutation: Mutation }[] {
  const words = values.only?.split(",") ?? null;
  const rooms = Object.entries(ROOMS).map(([room, folders]) => {
    const files = folders.flatMap(sourcesIn).filter((file) => words?.some((word) => file.includes(word)) ?? true);
    return { room, all: files.flatMap((file) => findMutations(file, readFileSync(join(ROOT, file), "utf8"))) };
  });
  const filled = rooms.filter(({ all }) => all.length > 0);
  const picked: { room: string; mutation: Mutation }[] = [];
  while (picked.length < count && filled.some(({ all }) => all.length > 0)) {
    for (const { room, all } of filled) {
      const [mutation] = all.splice(dice.between(0, all.length - 1), 1);
      if (mutation !== undefined && picked.length < count) picked.push({ room, mutation });
    }
  }
  return picked;
}

function sourcesIn(folder: string): string[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" });
  return files
    .map((file) => join(folder, file))
    .filter((file) => /\.(ts|lua)$/.test(file) && !LEFT_OUT.test(file))
    .sort();
}

function isTypeScript(file: string): boolean {
  return file.endsWith(".ts");
}

/** Takes mistakes from the queue and plants them in a copy of its own. */
async function work(): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), "waybill-mutants-"));
  copies.push(copy);
  for (const name of readdirSync(ROOT)) {
    if (name === "node_modules" || name === ".git" || name === ".waybill") continue;
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const fate = await tryMutation(copy, next);
    fates.push(fate);
    tell(fate);
    if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(fates, null, 1));
  }
}

async function tryMutation(copy: string, { room, mutation }: { room: string; mutation: Mutation }): Promise<Fate> {
  const path = join(copy, mutation.file);
  const text = readFileSync(path, "utf8");
  const wrong = planted(text, mutation);
  const tried: string[] = [];
  if (isTypeScript(mutation.file) && !compiler.accepts(mutation.file, wrong)) {
    return { room, mutation, tried, noticedBy: null, compiles: false };
  }
  const wanted = Number(values.tests);
  for (const test of reach.findTests(mutation.file).slice(0, LOOKED_AT * wanted)) {
    if (tried.length === wanted) break;
    if (!(await comesBy(copy, test, mutation))) continue;
    tried.push(test);
    writeFileSync(path, wrong);
    const ending = await trials.ending(copy, test, "--bail");
    writeFileSync(path, text);
    const isNoticed =
      (ending === "failed" && (await trials.runUnchanged(copy, test)).passes) ||
      (ending === "late" && (await trials.ending(copy, test)) === "passed");
    if (isNoticed) return { room, mutation, tried, noticedBy: test, compiles: true };
  }
  return { room, mutation, tried, noticedBy: null, compiles: true };
}

/** Returns whether the test's process, or one that it starts, can execute the mistake's line. */
async function comesBy(copy: string, test: string, { file, line }: Mutation): Promise<boolean> {
  if (!isTypeScript(file) || reach.startsProcesses(test)) return true;
  const counts = (await trials.runUnchanged(copy, test)).lines.get(file);
  // A line without a count belongs to another line that has one.
  return counts !== undefined && counts.get(line) !== 0;
}

function tell({ mutation: { file, line, before, after }, noticedBy, compiles }: Fate): void {
  const short = (text: string) => text.replaceAll(/\s+/g, " ").slice(0, 70);
  const fate = noticedBy === null ? (compiles ? "SURVIVES" : "does not compile") : `noticed by ${noticedBy}`;
  console.log(`${file}:${line}  ${short(before)}  ->  ${short(after) || "(nothing)"}  ${fate}`);
}

function report(): void {
  console.log("\n| room | mistakes | noticed | share |\n|---|---|---|---|");
  for (const room of [...Object.keys(ROOMS), "all"]) {
    const own = fates.filter((fate) => fate.compiles && (room === "all" || fate.room === room));
    const noticed = own.filter(({ noticedBy }) => noticedBy !== null).length;
    if (own.length > 0) {
      console.log(`| ${room} | ${own.length} | ${noticed} | ${Math.round((100 * noticed) / own.length)} % |`);
    }
  }
}
