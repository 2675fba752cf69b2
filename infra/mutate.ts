import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Dice } from "../test/simulation/dice.ts";
import { APART } from "../test/support/apart.ts";
import { endGroup } from "../test/support/end-group.ts";
import { TestReach } from "./mutant-tests.ts";
import { type Mutation, mutationsOf, planted } from "./mutations.ts";

/*
 * `npm run mutate` plants small mistakes into copies of the sources, one at a time, and runs the tests that are nearest
 * to each until one notices it. What no test notices is listed: it wants a test, or makes no difference.
 *
 *   npm run mutate -- [--count N] [--seed S] [--tests K] [--only WORD,…] [--json FILE]
 *
 * `--tests`: how many test files are tried for each mistake. The compiler is asked about what they all let pass: what it
 * refuses was no mistake that could be made, and is not counted.
 */

/** The rooms in which mistakes are made, with their names in the table. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  engine: ["src/engine"],
  intake: ["src/http", "src/tenants", "src/domain"],
  adapters: ["src/channels"],
  registry: ["src/storage", "src/app"],
  history: ["src/events", "src/webhooks"],
};
/** Sources of pages, made by tools, or that hold nothing but declarations and chosen numbers. */
const LEFT_OUT = /migrations|dashboard|\/docs\.ts|schemas?\.ts|tables\.ts|limits\.ts|\.d\.ts|drizzle\.config/;
const TEST_LIMIT_MS = 120_000;
/** They reach everything, and take long. */
const SLOW = /^test\/(soak|upgrade)\//;
/** What a forgotten call or condition leaves unused would give it away. */
const LENIENT = ["--noUnusedLocals", "false", "--noUnusedParameters", "false"];
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
    only: { type: "string" },
    json: { type: "string" },
  },
});
const dice = new Dice(Number(values.seed));
const tests = Array.from(new Bun.Glob("test/**/*.test.ts").scanSync(ROOT)).filter(
  (file) => !APART.includes(file) && !SLOW.test(file),
);
const reach = new TestReach(ROOT, tests);
const queue = drawn(Number(values.count));
const fates: Fate[] = [];
await Promise.all(Array.from({ length: Math.min(2, cpus().length) }, work));
report();

/** So many mistakes, the same number in each room, all different. */
function drawn(count: number): { readonly room: string; readonly mutation: Mutation }[] {
  const words = values.only?.split(",") ?? null;
  const rooms = Object.entries(ROOMS).map(([room, folders]) => {
    const files = folders.flatMap(sourcesIn).filter((file) => words?.some((word) => file.includes(word)) ?? true);
    return { room, all: files.flatMap((file) => mutationsOf(file, readFileSync(join(ROOT, file), "utf8"))) };
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

/** Takes mistakes from the queue and plants them in a copy of its own. */
async function work(): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), "waybill-mutants-"));
  try {
    for (const name of readdirSync(ROOT)) {
      if (name === "node_modules" || name === ".git" || name === ".waybill") continue;
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const fate = await fateOf(copy, next);
      fates.push(fate);
      tell(fate);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function fateOf(copy: string, { room, mutation }: { room: string; mutation: Mutation }): Promise<Fate> {
  const path = join(copy, mutation.file);
  const text = readFileSync(path, "utf8");
  const tried: string[] = [];
  writeFileSync(path, planted(text, mutation));
  try {
    for (const test of reach.testsOf(mutation.file).slice(0, Number(values.tests))) {
      tried.push(test);
      if (!(await passes(copy, [process.execPath, "test", "--bail", "--timeout=30000", `./${test}`]))) {
        return { room, mutation, tried, noticedBy: test, compiles: true };
      }
    }
    const compiles = await passes(copy, ["node_modules/.bin/tsc", "--noEmit", "-p", ".", ...LENIENT]);
    return { room, mutation, tried, noticedBy: null, compiles };
  } finally {
    writeFileSync(path, text);
  }
}

/** Whether it ends well, and in time: what hangs has noticed something. */
async function passes(cwd: string, command: string[]): Promise<boolean> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "ignore", stderr: "ignore", detached: true });
  const limit = setTimeout(() => endGroup(child), TEST_LIMIT_MS);
  const code = await child.exited;
  clearTimeout(limit);
  // Also the servers that it has left.
  endGroup(child);
  return code === 0;
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
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(fates, null, 1));
}
