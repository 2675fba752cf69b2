import { cpus } from "node:os";
import { relative } from "node:path";

/*
 * What `npm test` runs: every test file in a process of its own (chDB allows one data directory a process), two at a
 * time. Arguments filter by path. Says more only of what fails; the last line is `N passed, N failed`.
 */

interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** Shown when something failed. */
  readonly output: string;
}

/** Of one test or hook: enough on a busy machine too. */
const TEST_TIMEOUT_MS = 30_000;
const FILE_LIMIT_MS = 5 * 60_000;
const PARALLEL = Math.min(2, cpus().length);
const ROOT = new URL("..", import.meta.url).pathname;

const filters = process.argv.slice(2);
const files = Array.from(new Bun.Glob("test/**/*.test.ts").scanSync(ROOT))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
const running = new Set<Bun.Subprocess>();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    for (const child of running) end(child);
    process.exit(1);
  });
}

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
      const result = await runFile(file);
      done.push(result);
      report(result);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return done;
}

async function runFile(file: string): Promise<FileResult> {
  const startedMs = performance.now();
  const child = Bun.spawn([process.execPath, "test", `--timeout=${TEST_TIMEOUT_MS}`, `./${file}`], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    // The closing lines are read below: no colours in them.
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined },
    // A process group of its own, so that a file which hangs is ended together with the servers that it started.
    detached: true,
  });
  running.add(child);
  let timedOut = false;
  const limit = setTimeout(() => {
    timedOut = true;
    end(child);
  }, FILE_LIMIT_MS);
  const output = readUntilExit(child);
  const exitCode = await child.exited;
  clearTimeout(limit);
  // Whatever the file left running in its group ends with it.
  end(child);
  running.delete(child);
  const text = (await output) + (timedOut ? `\nended after ${FILE_LIMIT_MS / 60_000} minutes\n` : "");
  const passed = countOf(text, "pass");
  const failed = countOf(text, "fail");
  // A file that crashes, hangs or holds no test has failed, even where no test of it has.
  const crashed = failed === 0 && (exitCode !== 0 || passed + countOf(text, "skip") === 0);
  return { file, passed, failed: crashed ? 1 : failed, seconds: (performance.now() - startedMs) / 1000, output: text };
}

/** Standard output and error, in the order in which they came. */
async function readUntilExit(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<string> {
  const chunks: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) chunks.push(decoder.decode(bytes, { stream: true }));
  };
  await Promise.race([
    Promise.all([read(child.stdout), read(child.stderr)]),
    // A server in a session of its own can keep the pipes open after the test is over.
    child.exited.then(() => Bun.sleep(1_000)),
  ]);
  return chunks.join("");
}

/** The number in bun test's closing line ` 12 pass`. */
function countOf(output: string, word: string): number {
  const matches = Array.from(output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm")));
  return Number(matches.at(-1)?.[1] ?? 0);
}

function report(result: FileResult): void {
  const mark = result.failed === 0 ? "ok  " : "FAIL";
  const seconds = result.seconds.toFixed(1);
  console.log(
    `${mark} ${relative("test", result.file)}  ${result.passed} of ${result.passed + result.failed}, ${seconds} s`,
  );
  if (result.failed > 0) console.log(result.output);
}

function end(child: Bun.Subprocess): void {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Its group is gone already.
  }
}
