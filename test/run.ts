import { cpus } from "node:os";
import { relative } from "node:path";
import { endTestFilesOnSignal, type FileResult, runTestFile } from "./support/run-test-file.ts";

/*
 * What `npm test` runs: every test file in a process of its own (chDB allows one data directory a process), three at a
 * time. Arguments filter by path. Says more only of what fails; the last line is `N passed, N failed`.
 */

/** One more than the cores that they are meant for: much of what is tested is waited for. */
const PARALLEL = Math.min(3, cpus().length + 1);
const ROOT = new URL("..", import.meta.url).pathname;

const filters = process.argv.slice(2);
const files = Array.from(new Bun.Glob("test/**/*.test.ts").scanSync(ROOT))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
endTestFilesOnSignal();

const results = await runAll(files);
if (files.length === 0) console.log(`no test file matches ${filters.join(", ")}`);
const passed = results.reduce((sum, result) => sum + result.passed, 0);
// A filter that matches nothing is a mistake, not a success.
const failed = results.reduce((sum, result) => sum + result.failed, files.length === 0 ? 1 : 0);
for (const result of results.filter((each) => each.failed > 0)) console.log(`failed: ${result.file}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

async function runAll(waiting: readonly string[]): Promise<readonly FileResult[]> {
  const queue = waiting.slice();
  const done: FileResult[] = [];
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await runTestFile(file);
      done.push(result);
      report(result);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return done;
}

function report(result: FileResult): void {
  const mark = result.failed === 0 ? "ok  " : "FAIL";
  const seconds = result.seconds.toFixed(1);
  console.log(
    `${mark} ${relative("test", result.file)}  ${result.passed} of ${result.passed + result.failed}, ${seconds} s`,
  );
  if (result.failed > 0) console.log(result.output);
}
