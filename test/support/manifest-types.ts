import { join } from "node:path";
import ts from "typescript";
import type { Manifest } from "./deployment.ts";

/** Packages with the types of a group of kinds; the others are Kubernetes' own. */
const PACKAGES: Readonly<Record<string, string>> = {
  "gateway.networking.k8s.io": "@kubernetes-models/gateway-api/",
  "keda.sh": "@kubernetes-models/keda/",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator/",
};

/**
 * Returns the compiler's errors about manifests written as constants of their types, which declare each member's name.
 */
export function findTypeErrors(all: readonly Manifest[]): readonly string[] {
  const file = join(import.meta.dir, "../infra/manifests.ts");
  const lines = all.map((manifest, n) => {
    const [group = ""] = manifest.apiVersion.split("/");
    const module = `${PACKAGES[group] ?? "kubernetes-models/"}${manifest.apiVersion}/${manifest.kind}`;
    const text = JSON.stringify({ ...manifest, file: undefined });
    return `export const m${n}: import("${module}").I${manifest.kind} = ${text};`;
  });
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    lib: ["lib.es2022.d.ts"],
    module: ts.ModuleKind.Preserve,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  host.readFile = (path) => (path === file ? lines.join("\n") : readFile(path));
  host.fileExists = (path) => path === file || fileExists(path);
  const program = ts.createProgram([file], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}
