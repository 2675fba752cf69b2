import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { endGroup } from "../test/support/end-group.ts";

/** A test file's result: `late` if it may have failed only because the machine was busy. */
type Ending = "passed" | "failed" | "late";

/** A test file's behaviour with the unchanged sources. */
export interface Sound {
  readonly passes: boolean;
  /** How often its own process executed each line of each source. */
  readonly lines: ReadonlyMap<string, ReadonlyMap<number, number>>;
}

const FILE_LIMIT_MS = 120_000;
const TEST_LIMIT_MS = 30_000;
/** Timeout messages of `bun test` and `eventually`. */
const OVER = /timed out after|not within \d+ ms/;

/** Runs test files in a copy of the project, each in a process of its own. */
export class MutantTrials {
  private readonly sound = new Map<string, Promise<Sound>>();
  private readonly running = new Set<Bun.Subprocess>();

  /** Runs a test file in this unchanged copy. Each file runs once; the result is cached. */
  runUnchanged(copy: string, test: string): Promise<Sound> {
    const known = this.sound.get(test);
    if (known !== undefined) return known;
    const sound = this.measured(copy, test);
    this.sound.set(test, sound);
    return sound;
  }

  /** Runs the test file in this copy and returns its result. */
  async ending(copy: string, test: string, ...options: readonly string[]): Promise<Ending> {
    const child = Bun.spawn([process.execPath, "test", `--timeout=${TEST_LIMIT_MS}`, ...options, `./${test}`], {
      cwd: copy,
      env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      detached: true,
    });
    this.running.add(child);
    let isOver = false;
    const limit = setTimeout(() => {
      isOver = true;
      endGroup(child);
    }, FILE_LIMIT_MS);
    const chunks: string[] = [];
    const read = async () => {
      const decoder = new TextDecoder();
      for await (const bytes of child.stderr) chunks.push(decoder.decode(bytes, { stream: true }));
    };
    // A server in a session of its own can keep the pipe open.
    await Promise.race([read(), child.exited.then(() => Bun.sleep(1_000))]);
    const code = await child.exited;
    clearTimeout(limit);
    // Also ends servers that it has left behind.
    endGroup(child);
    this.running.delete(child);
    if (code === 0) return "passed";
    return isOver || OVER.test(chunks.join("")) ? "late" : "failed";
  }

  endAll(): void {
    for (const child of this.running) endGroup(child);
  }

  private async measured(copy: string, test: string): Promise<Sound> {
    const folder = join(copy, ".coverage", test);
    mkdirSync(folder, { recursive: true });
    const coverage = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${folder}`];
    const passes = (await this.ending(copy, test, ...coverage)) === "passed";
    const lines = passes ? parseCoverage(readFileSync(join(folder, "lcov.info"), "utf8")) : new Map();
    rmSync(folder, { recursive: true });
    return { passes, lines };
  }
}

function parseCoverage(lcov: string): Sound["lines"] {
  const files = new Map<string, Map<number, number>>();
  let lines = new Map<number, number>();
  for (const row of lcov.split("\n")) {
    const [kind, value = ""] = row.split(":", 2);
    if (kind === "SF") files.set(value, (lines = new Map()));
    const [line, count] = value.split(",").map(Number);
    if (kind === "DA" && line !== undefined && count !== undefined) lines.set(line, count);
  }
  return files;
}
