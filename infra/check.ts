/*
 * The checks of `npm run check`: all that need no run of the program. It prints one line per check, and the output of failed
 * ones. Arguments select checks by name; `--fast` selects those that take seconds, for use between two changes.
 */

interface Check {
  readonly name: string;
  /** A tool in node_modules/.bin, or a script of ours, with its arguments. */
  readonly command: readonly string[];
  /** Returns a fault that the tool's exit code 0 hides, or null. */
  readonly doubt?: (output: string) => string | null;
}

interface Verdict {
  readonly check: Check;
  readonly passed: boolean;
  readonly seconds: number;
  readonly output: string;
}

/** The tools share one machine: more at once would not finish sooner. */
const PARALLEL = 2;
const CHECK_LIMIT_MS = 5 * 60_000;
/** With fewer modules than this, the tool did not understand the sources, and its success means little. */
const MODULES_MIN = 40;
const ROOT = new URL("..", import.meta.url).pathname;
const SOURCES = ["src", "test", "infra", "clients", ...["bench"].filter(hasSources)];

/** The slowest checks come first, so that none runs alone at the end. */
const CHECKS: readonly Check[] = [
  // It also reports the compiler's errors, in a third of the compiler's time, and each `any` in `src`.
  { name: "lint", command: ["oxlint", "--type-aware", "--type-check", "--deny-warnings"] },
  { name: "client", command: ["infra/generate-client.ts", "--check"] },
  { name: "reference", command: ["infra/reference-page.ts", "--check"] },
  {
    name: "imports",
    command: ["depcruise", "--config", ".dependency-cruiser.cjs", "--output-type", "err-long", ...SOURCES],
    doubt: (output) => {
      const modules = Number(/(\d+) modules/.exec(output)?.[1] ?? 0);
      return modules < MODULES_MIN ? `it saw ${modules} modules; there are ${MODULES_MIN} at least` : null;
    },
  },
  { name: "links", command: ["infra/check-links.ts"] },
  { name: "prose", command: ["infra/check-prose.ts"] },
  { name: "unused", command: ["knip", "--no-progress", "--no-config-hints"] },
  // The dashboard runs in browsers.
  { name: "dashboard-types", command: ["tsc", "--noEmit", "-p", "src/operators/dashboard"] },
  // The client must do without Bun's types.
  { name: "client-types", command: ["tsc", "--noEmit", "-p", "clients/typescript"] },
  { name: "format", command: ["biome", "check", "."] },
  { name: "licences", command: ["infra/licences.ts", "--check"] },
  { name: "version", command: ["infra/version.ts", "--check"] },
];

/** Without the compiler's view of the whole program, which takes most of the time. */
const FAST: readonly Check[] = [
  { name: "lint", command: ["oxlint", "--deny-warnings"] },
  ...CHECKS.filter(({ name }) =>
    ["client", "reference", "imports", "links", "prose", "format", "version"].includes(name),
  ),
];

const [isFast, wanted] = [process.argv.includes("--fast"), process.argv.slice(2).filter((word) => word !== "--fast")];
const checks = (isFast ? FAST : CHECKS).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const verdicts = await runAll(checks);
const failed = verdicts.filter(({ passed }) => !passed).length + (checks.length === 0 ? 1 : 0);
if (checks.length === 0) console.log(`there is no such check; there are ${CHECKS.map(({ name }) => name).join(", ")}`);
process.exit(failed === 0 ? 0 : 1);

async function runAll(all: readonly Check[]): Promise<readonly Verdict[]> {
  const queue = all.slice();
  const verdicts: Verdict[] = [];
  const worker = async () => {
    for (let check = queue.shift(); check !== undefined; check = queue.shift()) {
      const verdict = await run(check);
      verdicts.push(verdict);
      report(verdict);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return verdicts;
}

async function run(check: Check): Promise<Verdict> {
  const startedMs = performance.now();
  const [tool, ...args] = check.command;
  const program = tool?.endsWith(".ts") === true ? tool : `node_modules/.bin/${tool}`;
  // The tools request Node.js; under Bun they do not depend on the machine's version of it.
  const child = Bun.spawn([process.execPath, "--bun", program, ...args], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined },
    timeout: CHECK_LIMIT_MS,
    killSignal: "SIGKILL",
  });
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const doubt = exitCode === 0 ? (check.doubt?.(out + err) ?? null) : null;
  const seconds = (performance.now() - startedMs) / 1000;
  return { check, passed: exitCode === 0 && doubt === null, seconds, output: out + err + (doubt ?? "") };
}

function report({ check, passed, seconds, output }: Verdict): void {
  console.log(`${passed ? "ok  " : "FAIL"} ${check.name}  ${seconds.toFixed(1)} s`);
  if (!passed) console.log(output);
}

function hasSources(folder: string): boolean {
  return Array.from(new Bun.Glob(`${folder}/*.ts`).scanSync(ROOT)).length > 0;
}
