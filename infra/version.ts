import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

/*
 * `bun infra/version.ts 1.2.3` makes that the version in package.json, from which the program reads it, and in every file that
 * must name it too. With --check it reports which of them has another version, or whether the changelog lacks it.
 */

const ROOT = new URL("..", import.meta.url).pathname;
const NAMED_IN = [
  "package.json",
  "clients/typescript/package.json",
  "clients/python/pyproject.toml",
  "infra/compose/compose.yaml",
  "infra/docker/Dockerfile",
  "infra/docker/postfix.Dockerfile",
  "infra/helm/waybill/Chart.yaml",
  "infra/kubernetes/api.yaml",
  "infra/kubernetes/dispatcher.yaml",
  "infra/kubernetes/kustomization.yaml",
  "infra/kubernetes/mail.yaml",
  "infra/kubernetes/migrate.yaml",
  "infra/kubernetes/recorder.yaml",
  "docs/deploy.md",
  "docs/quick-start.md",
] as const;
const CHANGELOG = "docs/CHANGELOG.md";
/** An image's tag, an archive's or a folder's name, a manifest's member. */
const NAMED = /(\bwaybill(?:-postfix)?[:-]|\b(?:appV|v)ersion"?\s*[:=]\s*"|newTag: )(\d+\.\d+\.\d+)/g;

function check(): readonly string[] {
  const { version } = JSON.parse(read("package.json"));
  const problems = NAMED_IN.flatMap((file) => {
    const named = Array.from(read(file).matchAll(NAMED), ([, , each]) => each);
    if (named.length === 0) return [`${file} names no version`];
    return named.filter((each) => each !== version).map((each) => `${file} names ${each}; package.json, ${version}`);
  });
  if (!read(CHANGELOG).includes(`\n## ${version} (`)) problems.push(`${CHANGELOG} has no section for ${version}`);
  return problems;
}

function write(version: string): void {
  for (const file of NAMED_IN) writeFileSync(`${ROOT}/${file}`, read(file).replaceAll(NAMED, `$1${version}`));
}

function read(file: string): string {
  return readFileSync(`${ROOT}/${file}`, "utf8");
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { check: { type: "boolean" } } });
const [wanted] = positionals;
const isVersion = wanted !== undefined && /^\d+\.\d+\.\d+$/.test(wanted);
if (isVersion) write(wanted);
const problems = isVersion || values.check === true ? check() : ["which version? bun infra/version.ts 1.2.3"];
for (const problem of problems) console.log(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
