import { join } from "node:path";
import ts from "typescript";

/** Unused code would reveal a removed call or condition, so it is allowed. */
const LENIENT: ts.CompilerOptions = { noUnusedLocals: false, noUnusedParameters: false };

/** Compiles changed sources one after the other, and reads their imports only once. */
export class MutantCompiler {
  private readonly options: ts.CompilerOptions;
  /** Includes declarations of modules that are not TypeScript. */
  private readonly rootNames: readonly string[];
  private readonly host: ts.CompilerHost;
  private readonly known = new Map<string, ts.SourceFile | undefined>();
  private changed: { readonly path: string; readonly text: string } | null = null;
  private program: ts.Program | null = null;

  constructor(private readonly root: string) {
    const config = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
    const { options, fileNames } = ts.parseJsonConfigFileContent(config.config, ts.sys, root);
    this.options = { ...options, ...LENIENT };
    this.rootNames = fileNames.filter((file) => file.startsWith(join(root, "src/")));
    const host = ts.createCompilerHost(this.options);
    const read = host.getSourceFile.bind(host);
    this.host = {
      ...host,
      getSourceFile: (file, version) => {
        if (file === this.changed?.path) return ts.createSourceFile(file, this.changed.text, version, true);
        if (!this.known.has(file)) this.known.set(file, read(file, version));
        return this.known.get(file);
      },
    };
  }

  /** Whether the compiler accepts the source with this text. Sources that import it are not checked. */
  accepts(file: string, text: string): boolean {
    const path = join(this.root, file);
    this.changed = { path, text };
    const program = ts.createProgram(this.rootNames, this.options, this.host, this.program ?? undefined);
    this.program = program;
    const source = program.getSourceFile(path);
    return program.getSyntacticDiagnostics(source).length === 0 && program.getSemanticDiagnostics(source).length === 0;
  }
}
