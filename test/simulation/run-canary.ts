import { readFileSync } from "node:fs";
import { CANARIES } from "./canary.ts";

/*
 * Plants one canary into the sources as they are loaded, and tells its story, or runs seeds until one fails:
 *   bun test/simulation/run-canary.ts <number of the canary> <seeds at most> [the first seed]
 * Prints one line of JSON: the first seed that fails (0: the story), or null, and what it found.
 */

const ROOT = new URL("../../", import.meta.url).pathname;
const [which, seedsMax, firstSeed = 1] = process.argv.slice(2).map(Number);
const canary = CANARIES[which ?? -1];
if (canary === undefined || seedsMax === undefined) throw new Error("name a canary by its number, and how many seeds");

const path = `${ROOT}${canary.file}`;
const pieces = readFileSync(path, "utf8").split(canary.find);
if (pieces.length !== 2) throw new Error(`${canary.file} has "${canary.find}" ${pieces.length - 1} times, not once`);
const contents = pieces.join(canary.replace);
Bun.plugin({
  name: "canary",
  setup: (build) => {
    // A script is imported as its text.
    const module = canary.file.endsWith(".lua")
      ? ({ contents: `export default ${JSON.stringify(contents)}`, loader: "js" } as const)
      : ({ contents, loader: "ts" } as const);
    build.onLoad({ filter: new RegExp(`${RegExp.escape(canary.file)}$`) }, () => module);
  },
});

// Only now: modules imported from here on contain the canary.
const { simulate, SimulationFailure } = await import("./simulation.ts");
let found: { readonly seed: number; readonly promise: string } | null = null;
if (canary.story !== undefined) {
  const { CLOCK_STORIES } = await import("./clock-stories.ts");
  const { SLOT_STORIES } = await import("./slot-stories.ts");
  const { RETRY_STORIES } = await import("./retry-stories.ts");
  const stories = { ...CLOCK_STORIES, ...RETRY_STORIES, ...SLOT_STORIES };
  try {
    stories[canary.story]();
  } catch (error) {
    found = { seed: 0, promise: String(error) };
  }
  console.log(JSON.stringify(found));
  process.exit(0);
}
for (let seed = firstSeed; seed < firstSeed + seedsMax && found === null; seed += 1) {
  try {
    simulate(seed);
  } catch (error) {
    found = { seed, promise: error instanceof SimulationFailure ? error.violation.promise : String(error) };
  }
}
console.log(JSON.stringify(found));
