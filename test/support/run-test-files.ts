import { join } from "node:path";
import { endGroup } from "./end-group.ts";

export interface FilesResult {
  readonly files: readonly string[];
  /** The files with a failure, or all where that cannot be determined, each with the last output of bun test. */
  readonly broken: ReadonlyMap<string, string>;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** The CPU time of the test's process and of the children that it has waited for. */
  readonly cpuSeconds: number;
  /** Shown after a failure. */
  readonly output: string;
}

/**
 * The limit for one test or hook. Limits only end hanging tests, so they are many times the usual duration on a slow
 * and busy machine.
 */
const TEST_TIMEOUT_MS = 90_000;
/** The limit for one file, or several short ones that share a process. */
export const FILES_LIMIT_MS = 15 * 60_000;
const ROOT = join(import.meta.dir, "../..");
/** A failed test or hook, or an unhandled rejection, which bun test does not count as a failure. */
const FAILURE = /^(?:\(fail\) |# Unhandled error )/m;
/** Enough lines to show the failure, and few enough that the end of a log does not show one failure alone. */
const LINES_TOLD = 40;
/**
 * Settings of the runtime's compilers, in test files and the servers that they start: most processes live for seconds,
 * in which they would spend a sixth of their CPU on the last compilation of WebAssembly and an early second one of
 * JavaScript, and never get it back. `npm run prove` runs without them where it measures figures. Names and defaults:
 * JavaScriptCore, runtime/OptionsList.h.
 */
export const COMPILERS = {
  BUN_JSC_useOMGJIT: "false",
  BUN_JSC_thresholdForOptimizeAfterWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeSoon: "20000",
} as const;
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

/** Runs test files one after another in a separate process, with a time limit for all of them. */
export async function runTestFiles(
  files: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  limitMs = FILES_LIMIT_MS,
): Promise<FilesResult> {
  const startedMs = performance.now();
  const paths = files.map((file) => `./${file}`);
  const child = Bun.spawn([process.execPath, "test", `--timeout=${TEST_TIMEOUT_MS}`, ...paths], {
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
  const { all, report } = await output;
  const passed = readCount(report, "pass");
  const failed = readCount(report, "fail");
  const told = toldByFile(report);
  // A file that contains no test has failed, even if none of its tests has, and so have files that crash or hang.
  const empty = files.filter((file) => !/\((?:pass|fail|skip|todo)\) /.test(told.get(file) ?? ""));
  const crashed = failed === 0 && (exitCode !== 0 || empty.length > 0);
  const found = files.filter((file) => empty.includes(file) || FAILURE.test(told.get(file) ?? ""));
  const broken = found.length > 0 || !(failed > 0 || crashed) ? found : files;
  const ending = timedOut ? `ended after ${limitMs / 60_000} minutes` : `ended with ${child.signalCode ?? exitCode}`;
  return {
    files,
    broken: new Map(broken.map((file) => [file, `${closingLines(told.get(file) ?? "")}\n${ending}`])),
    passed,
    failed: crashed ? Math.max(1, empty.length) : failed,
    seconds: (performance.now() - startedMs) / 1000,
    cpuSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
    output: `${all}\n${ending}\n`,
  };
}

interface Output {
  /** Standard output and error, in order of arrival. */
  readonly all: string;
  /** Standard error alone, to which bun test reports. */
  readonly report: string;
}

async function readUntilExit(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<Output> {
  const chunks: string[] = [];
  const reported: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>, into: readonly string[][]) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      const text = decoder.decode(bytes, { stream: true });
      for (const one of into) one.push(text);
    }
  };
  await Promise.race([
    Promise.all([read(child.stdout, [chunks]), read(child.stderr, [chunks, reported])]),
    // A server in a separate session can keep the pipes open after the test is over.
    child.exited.then(() => Bun.sleep(1_000)),
  ]);
  return { all: chunks.join(""), report: reported.join("") };
}

/** Returns the output of bun test for each file, under a line with its path. */
function toldByFile(report: string): ReadonlyMap<string, string> {
  // bun test repeats all failures under a last heading.
  const [each = ""] = report.split(/^\d+ tests? failed:$/m);
  const [, ...parts] = each.split(/^(test\/\S+\.test\.ts):$/m);
  const told = new Map<string, string>();
  for (let i = 0; i < parts.length; i += 2) {
    const file = parts[i] ?? "";
    told.set(file, (told.get(file) ?? "") + (parts[i + 1] ?? ""));
  }
  return told;
}

function closingLines(told: string): string {
  const lines = told.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("(pass) "));
  return lines.slice(-LINES_TOLD).join("\n");
}

/** The number in bun test's closing line ` 12 pass`. */
function readCount(report: string, word: string): number {
  const matches = Array.from(report.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm")));
  return Number(matches.at(-1)?.[1] ?? 0);
}
