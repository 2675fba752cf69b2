import { writeFileSync } from "node:fs";
import { readOptions, type SoakOptions, USAGE } from "./options.ts";
import { holds, type SoakReport, toMarkdown } from "./report.ts";
import { runSoak } from "./run-soak.ts";

/*
 * `npm run soak`: hours in the life of the whole program, with every kind of fault (CONTRIBUTING.md, "The soak"). Exit
 * code 1: a promise was broken; 2: it could not run.
 */
const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

function options(): SoakOptions {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`soak: ${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}

function write(report: SoakReport, file: string): void {
  writeFileSync(file, toMarkdown(report));
  writeFileSync(`${file}.json`, `${JSON.stringify(report, null, 1)}\n`);
}

const chosen = options();
const over = new AbortController();
// The first one ends the load and checks the results so far; the second one ends it at once.
process.once("SIGINT", () => over.abort());
process.once("SIGTERM", () => over.abort());
try {
  const report = await runSoak(chosen, say, over.signal);
  if (chosen.report !== null) write(report, chosen.report);
  process.stdout.write(toMarkdown(report));
  process.exit(holds(report) ? 0 : 1);
} catch (error) {
  say(`the soak could not run: ${error instanceof Error ? error.stack : String(error)}`);
  process.exit(2);
}
