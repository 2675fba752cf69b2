import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Proof } from "./support/proof.ts";
import { endTestFilesOnSignal, FILES_LIMIT_MS, runTestFiles } from "./support/run-test-files.ts";

/*
 * `npm run prove` runs every test that breaks whole processes, one after the other, and prints the state of the
 * promises: a line per fault, and a copy as JSON.
 *
 *   npm run prove -- [words in paths] [--json FILE] [--docs]
 *
 * With `--docs` it regenerates the figures in docs/promises.md.
 *
 * Sizes are those of the test suite; the environment variables at the top of each test make them larger.
 */

/** The tests that break a part: those of faults, and others that kill processes, replace them, or change schemas. */
const TESTS = [
  "test/faults/*.test.ts",
  "test/whole/*{crash,cluster,upgrade}*.test.ts",
  "test/upgrade/*.test.ts",
  "test/{events/growing,storage/migrations}.test.ts",
  "test/engine/recorder/{recorder-death,killed-inserts}.test.ts",
  "test/engine/queue/*cluster*.test.ts",
  "test/tenants/registry-outage.test.ts",
] as const;
const FILE_LIMIT_MS = Number(process.env["PROVE_FILE_LIMIT_MS"] ?? FILES_LIMIT_MS);
const ROOT = join(import.meta.dir, "..");

/** The result of one file. */
interface Line {
  readonly test: string;
  readonly holds: boolean;
  readonly seconds: number;
  readonly proofs: readonly JudgedProof[];
}

interface JudgedProof extends Proof {
  readonly holds: boolean;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "string", default: "prove-results.json" }, docs: { type: "boolean", default: false } },
});
endTestFilesOnSignal();
const lines: Line[] = [];
for (const file of filesToRun(positionals)) lines.push(await prove(file));
print(lines);
await writeResults(lines, values.json);
if (values.docs) await writeDocs(lines);
const broken = lines.filter(({ holds }) => !holds);
console.log(`\n${lines.length - broken.length} files hold, ${broken.length} do not; written to ${values.json}`);
for (const { test } of broken) console.log(`does not hold: ${test}`);
process.exit(broken.length === 0 && lines.length > 0 ? 0 : 1);

function filesToRun(words: readonly string[]): readonly string[] {
  const files = TESTS.flatMap((pattern) => Array.from(new Bun.Glob(pattern).scanSync(ROOT)).sort());
  return files.filter((file) => words.length === 0 || words.some((word) => file.includes(word)));
}

async function prove(file: string): Promise<Line> {
  const folder = mkdtempSync(join(tmpdir(), "waybill-prove-"));
  const results = join(folder, "results.jsonl");
  try {
    const { failed, seconds, output } = await runTestFiles([file], { PROVE_RESULTS: results }, FILE_LIMIT_MS);
    const written = existsSync(results) ? readFileSync(results, "utf8").trim().split("\n").map(readProof) : [];
    const proofs = judged(written, output, failed === 0);
    console.log(`${failed === 0 ? "holds" : "DOES NOT HOLD"}  ${file}, ${Math.round(seconds)} s`);
    if (failed > 0) console.log(output);
    return { test: file, holds: failed === 0, seconds: Math.round(seconds), proofs };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Each test writes one proof, in the order in which bun names them; a file without one proof per test is judged as a
 * whole.
 */
function judged(proofs: readonly Proof[], output: string, fileHolds: boolean): readonly JudgedProof[] {
  const verdicts = Array.from(output.matchAll(/^\((pass|fail)\) /gm), ([, verdict]) => verdict === "pass");
  const isMatched = verdicts.length === proofs.length;
  return proofs.map((proof, index) => ({ ...proof, holds: isMatched ? verdicts[index] === true : fileHolds }));
}

function readProof(line: string): Proof {
  // `recordProof` writes a proof per line, in which null stands for an infinite figure.
  return JSON.parse(line, (_, value: unknown) => (value === null ? Number.POSITIVE_INFINITY : value)) as Proof;
}

function toRows(all: readonly Line[]): readonly Row[] {
  return all.flatMap(({ test, holds, proofs }) => (proofs.length === 0 ? [{ fault: test, holds }] : proofs).map(toRow));
}

function print(all: readonly Line[]): void {
  console.log();
  console.table(toRows(all));
  console.log("lost: accepted and never ended. twice: handed to a provider again / so many the promise allows.");
  console.log("recovery: from the end of the fault. neighbour: the longest wait of an unconcerned tenant from its");
  console.log("request to the hand-over, and its p99 beside the fault divided by its p99 without.");
  for (const { fault, note } of all.flatMap(({ proofs }) => proofs)) {
    if (note !== undefined) console.log(`  ${fault}: ${note}`);
  }
}

type Row = Readonly<Record<string, string | number>>;

function toRow(proof: JudgedProof): Row {
  const { fault, holds, accepted, lost, sentTwice, sentTwiceAllowed, recoveryMs, neighbourMs, neighbourRatio } = proof;
  return {
    fault,
    holds: holds ? "yes" : "NO",
    accepted: accepted ?? "",
    lost: lost ?? "",
    twice: sentTwice === undefined ? "" : `${sentTwice} / ${sentTwiceAllowed ?? 0}`,
    recovery: seconds(recoveryMs),
    neighbour: seconds(neighbourMs),
    ratio: neighbourRatio === undefined ? "" : `${neighbourRatio.toFixed(1)}x`,
  };
}

function seconds(ms: number | undefined): string {
  if (ms === undefined) return "";
  return Number.isFinite(ms) ? `${(ms / 1000).toFixed(1)} s` : "never";
}

/** The text between the two comments that mark it. */
async function writeDocs(all: readonly Line[]): Promise<void> {
  const withNote = (proof: JudgedProof): Row => ({ ...toRow(proof), note: proof.note?.replaceAll("|", "/") ?? "" });
  const rows = all.flatMap(({ proofs }) => proofs.map(withNote));
  const [first] = rows;
  if (first === undefined) return;
  const names = Object.keys(first);
  const table = [names, names.map(() => "---"), ...rows.map((row) => names.map((name) => String(row[name])))];
  const lines = table.map((cells) => `| ${cells.join(" | ")} |`);
  const where = `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores, Bun ${Bun.version}`;
  const page = join(ROOT, "docs/promises.md");
  const text = await Bun.file(page).text();
  const figures = `<!-- figures -->\n\n${where}:\n\n${lines.join("\n")}\n\n<!-- /figures -->`;
  await Bun.write(
    page,
    text.replace(/<!-- figures -->[^]*<!-- \/figures -->/, () => figures),
  );
}

async function writeResults(all: readonly Line[], file: string): Promise<void> {
  const machine = { at: new Date().toISOString(), bun: Bun.version, cpus: cpus().length, cpu: cpus()[0]?.model };
  await Bun.write(file, `${JSON.stringify({ ...machine, tests: all }, null, 2)}\n`);
}
