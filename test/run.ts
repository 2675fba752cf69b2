import { relative } from "node:path";
import { APART } from "./support/apart.ts";
import { compilerOptions } from "./support/basic-environment.ts";
import { LONG_SLOTS, MACHINE_SLOTS, withMachineSlot } from "./support/machine-slots.ts";
import { KEPT, prepareMadeHome } from "./support/made-home.ts";
import { memoryFolder } from "./support/memory-folder.ts";
import { processGroups } from "./support/process-groups.ts";
import { COMPILERS, endTestFilesOnSignal, type FilesResult, runTestFiles } from "./support/run-test-files.ts";

/*
 * The runner behind `npm test`: the test files of a folder run in a few processes, and those that take long or need a
 * process of their own in one (`support/process-groups.ts`), three at a time, the short ones four, or fewer beside
 * another run (`support/machine-slots.ts`). Arguments filter by path. Reports details only of failures, and how many
 * attacks were tried (`test/security`); the last line is `N passed, N failed`.
 */

const PARALLEL = Math.min(4, MACHINE_SLOTS);
const LONG_PARALLEL = Math.min(3, LONG_SLOTS);
const ROOT = new URL("..", import.meta.url).pathname;
/**
 * Slow files and folders, the slowest first (seconds of CPU, 60 to 15). They go first, so that no slow file runs alone
 * at the end. Files that are not listed come after them.
 */
const LONG = [
  "upgrade/rolling-upgrade",
  "whole/backup",
  "whole/processes",
  "whole/start-checks",
  "http/every-endpoint",
  "whole/life",
  "events/clickhouse-events",
  "whole/export",
  "whole/crash",
  "whole/pass-crash",
  "whole/rotate-keys",
  "whole/redis-cluster",
  "simulation",
  "docs/pages",
  "whole/large-payloads",
  "faults",
  "infra/deployment-start",
  "whole",
  "security",
  "channels/email/mail-log/postfix",
  "operators/dashboard-in-browser",
];

const filters = process.argv.slice(2);
const files = Array.from(new Bun.Glob("test/**/*.test.ts").scanSync(ROOT))
  .filter((file) => (filters.length === 0 ? !APART.includes(file) : filters.some((one) => file.includes(one))))
  .sort((a, b) => findRank(a) - findRank(b) || (a < b ? -1 : 1));
endTestFilesOnSignal();
// Otherwise each of the first files would create it.
if (filters.length === 0) await prepareMadeHome();

const folder = memoryFolder();
const places = folder === null ? {} : { TMPDIR: folder, TEST_KEPT: KEPT };
const results = await runAll(inOrder(processGroups(files, (file) => isLong([file]))));
if (files.length === 0) console.log(`no test file matches ${filters.join(", ")}`);
const passed = results.reduce((sum, result) => sum + result.passed, 0);
// A filter without matches is a mistake, not a success.
const failed = results.reduce((sum, result) => sum + result.failed, files.length === 0 ? 1 : 0);
// Repeated at the end: often only the end of a long log is kept.
for (const [file, told] of results.flatMap(({ broken }) => Array.from(broken))) console.log(`failed: ${file}\n${told}`);
reportAttacks();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

function findRank(file: string): number {
  const rank = LONG.findIndex((start) => file.startsWith(`test/${start}`));
  return rank === -1 ? LONG.length : rank;
}

/** Files that share a process go between the slow ones and the others, the largest groups first. */
function inOrder(groups: readonly string[][]): readonly string[][] {
  const others = groups.filter((group) => !isLong(group)).sort((a, b) => b.length - a.length);
  return [...groups.filter(isLong), ...others];
}

function isLong([file = ""]: readonly string[]): boolean {
  return findRank(file) < LONG.length;
}

async function runAll(waiting: readonly string[][]): Promise<readonly FilesResult[]> {
  const queue = waiting.slice();
  const done: FilesResult[] = [];
  const onlyShort = Promise.withResolvers<void>();
  const next = () => {
    const group = queue.shift();
    if (!queue.some(isLong)) onlyShort.resolve();
    return group;
  };
  const worker = async () => {
    while (queue.length > 0) {
      await withMachineSlot(async () => {
        const group = next();
        if (group === undefined) return;
        const result = await runTestFiles(group, { ...places, ...COMPILERS, ...compilerOptions() });
        done.push(result);
        report(result);
      });
    }
  };
  const further = () => onlyShort.promise.then(worker);
  await Promise.all(Array.from({ length: PARALLEL }, (_, n) => (n < LONG_PARALLEL ? worker() : further())));
  return done;
}

/** Test files of attacks each print a line `attacks: N tried, N got through (subject)`. */
function reportAttacks(): void {
  const lines = results.flatMap(({ output }) =>
    Array.from(output.matchAll(/^attacks: (\d+) tried, (\d+) got through/gm)),
  );
  if (lines.length === 0) return;
  const sumGroup = (group: 1 | 2) => lines.reduce((sum, line) => sum + Number(line[group]), 0);
  console.log(`attacks: ${sumGroup(1)} tried, ${sumGroup(2)} got through`);
}

function report(result: FilesResult): void {
  const mark = result.failed === 0 ? "ok  " : "FAIL";
  const tests = `${result.passed} of ${result.passed + result.failed}`;
  const time = `${result.seconds.toFixed(1)} s (CPU ${result.cpuSeconds.toFixed(1)} s)`;
  console.log(`${mark} ${result.files.map((file) => relative("test", file)).join(" ")}  ${tests}, ${time}`);
  if (result.failed > 0) console.log(result.output);
}
