import { join } from "node:path";
import { endGroup } from "./end-group.ts";

export interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** Of the test's process and the children that it has waited for. */
  readonly cpuSeconds: number;
  /** Shown after a failure. */
  readonly output: string;
}

/** For one test or hook: enough on a busy machine too. */
const TEST_TIMEOUT_MS = 30_000;
const FILE_LIMIT_MS = 5 * 60_000;
const ROOT = join(import.meta.dir, "../..");
const running = new Set<Bun.Subprocess>();

/** A signal that ends this process also ends its test files. */
export function endTestFilesOnSignal(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      for (const child of running) endGroup(child);
      process.exit(1);
    });
  }
}

/** Runs a test file in a separate process, with a time limit. */
export async function runTestFile(
  file: string,
  environment: Readonly<Record<string, string>> = {},
  limitMs = FILE_LIMIT_MS,
): Promise<FileResult> {
  const startedMs = performance.now();
  const child = Bun.spawn([process.execPath, "test", `--timeout=${TEST_TIMEOUT_MS}`, `./${file}`], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    // The closing lines are parsed below, so they must have no colours.
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined, ...environment },
    // A separate process group, so that a hanging file is ended together with the servers that it started.
    detached: true,
  });
  running.add(child);
  let timedOut = false;
  const limit = setTimeout(() => {
    timedOut = true;
    endGroup(child);
  }, limitMs);
  const output = readUntilExit(child);
  const exitCode = await child.exited;
  clearTimeout(limit);
  // Ends everything that the file left running in its group.
  endGroup(child);
  running.delete(child);
  const text = (await output) + (timedOut ? `\nended after ${limitMs / 60_000} minutes\n` : "");
  const passed = countOf(text, "pass");
  const failed = countOf(text, "fail");
  // A file that crashes, hangs or contains no test has failed, even if none of its tests has.
  const crashed = failed === 0 && (exitCode !== 0 || passed + countOf(text, "skip") === 0);
  return {
    file,
    passed,
    failed: crashed ? 1 : failed,
    seconds: (performance.now() - startedMs) / 1000,
    cpuSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
    output: text,
  };
}

/** Standard output and error, in order of arrival. */
async function readUntilExit(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<string> {
  const chunks: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) chunks.push(decoder.decode(bytes, { stream: true }));
  };
  await Promise.race([
    Promise.all([read(child.stdout), read(child.stderr)]),
    // A server in a separate session can keep the pipes open after the test is over.
    child.exited.then(() => Bun.sleep(1_000)),
  ]);
  return chunks.join("");
}

/** The number in bun test's closing line ` 12 pass`. */
function countOf(output: string, word: string): number {
  const matches = Array.from(output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm")));
  return Number(matches.at(-1)?.[1] ?? 0);
}
