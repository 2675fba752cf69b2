import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** The imports among the project's TypeScript modules, by their paths from the root, without those of types. */
export class ModuleImports {
  private readonly known = new Map<string, readonly string[]>();

  constructor(private readonly root: string) {}

  of(module: string): readonly string[] {
    const known = this.known.get(module);
    if (known !== undefined) return known;
    const code = readFileSync(join(this.root, module), "utf8").replace(/^#!.*/, "");
    const loader = module.endsWith("x") ? "tsx" : "ts";
    const paths = new Bun.Transpiler({ loader }).scanImports(code).map(({ path }) => path);
    const own = paths
      .filter((path) => /^\.\.?\/.*\.tsx?$/.test(path))
      .map((path) => relative(this.root, join(this.root, dirname(module), path)))
      .filter((path) => existsSync(join(this.root, path)));
    this.known.set(module, own);
    return own;
  }
}
