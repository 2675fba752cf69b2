import { basename, dirname } from "node:path";
import { ModuleImports } from "../test/support/module-imports.ts";

/** Tests that start the program, or a part of it, as a process import its sources by these. */
const STARTS: Readonly<Record<string, readonly string[]>> = {
  "test/support/waybill.ts": ["src/main.ts"],
  "test/support/command.ts": ["src/main.ts"],
};
/** The entry point for files that the bundler does not see: the queue's scripts are read by the modules beside them. */
const SCRIPTS = "src/engine/queue/redis-queue.ts";

/** Finds the tests that reach a source by their imports. */
export class TestReach {
  private readonly imports: ModuleImports;
  private readonly depths = new Map<string, ReadonlyMap<string, number>>();

  constructor(
    root: string,
    /** Paths from the root. */
    private readonly tests: readonly string[],
  ) {
    this.imports = new ModuleImports(root);
  }

  /**
   * Returns the tests that reach the source: first tests with a similar name, then tests of its folder, by the fewest import
   * steps. Tests that start the whole program take longer, and come later.
   */
  findTests(file: string): readonly string[] {
    const source = file.endsWith(".lua") ? SCRIPTS : file;
    const room = dirname(file).replace(/^src/, "test");
    const words = [...splitWords(file), ...(file.endsWith(".lua") ? ["redis-queue"] : [])];
    const reaching = this.tests.flatMap((test) => {
      const depth = this.measureDepths(test).get(source);
      if (depth === undefined) return [];
      const isNamedLikeIt = words.some((word) => basename(test).includes(word));
      const distance = (isNamedLikeIt ? 0 : 100) + (test.startsWith(room) ? 0 : 150) + depth;
      return [{ test, rank: distance * (this.startsProcesses(test) ? 3 : 1) }];
    });
    return reaching.sort((a, b) => a.rank - b.rank || (a.test < b.test ? -1 : 1)).map(({ test }) => test);
  }

  /** Whether it starts the program as a process, whose lines its own process does not count. */
  startsProcesses(test: string): boolean {
    return Object.keys(STARTS).some((module) => this.measureDepths(test).has(module));
  }

  private measureDepths(test: string): ReadonlyMap<string, number> {
    const known = this.depths.get(test);
    if (known !== undefined) return known;
    const depths = new Map([[test, 0]]);
    // A map's iterator also visits entries added meanwhile.
    for (const [module, depth] of depths) {
      for (const imported of this.readImports(module)) if (!depths.has(imported)) depths.set(imported, depth + 1);
    }
    this.depths.set(test, depths);
    return depths;
  }

  private readImports(module: string): readonly string[] {
    return [...this.imports.of(module), ...(STARTS[module] ?? [])];
  }
}

/** Splits a file's name into words, without the common ones. */
function splitWords(file: string): readonly string[] {
  const words = basename(file)
    .replace(/\.\w+$/, "")
    .split("-");
  return words.filter(
    (word) => word.length > 3 && !/^(tenant|endpoints?|repository|store|event|queue|redis|message)$/.test(word),
  );
}
