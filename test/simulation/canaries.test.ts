import { expect, test } from "bun:test";
import { cpus } from "node:os";
import { CANARIES } from "./canary.ts";

/*
 * The test of the simulation: each mistake of the table is planted into the engine's sources, in a process of its own,
 * and must be noticed. `CANARY_TABLE=1 bun test test/simulation/canaries.test.ts` prints which seed, or story, notices which.
 */

const SEEDS_MAX = 150;
const PARALLEL = Math.min(2, cpus().length);
const RUNNER = new URL("run-canary.ts", import.meta.url).pathname;

interface Catch {
  readonly seed: number;
  readonly promise: string;
}

test(`each of ${CANARIES.length} planted mistakes is noticed within ${SEEDS_MAX} seeds of its known one`, async () => {
  const catches = await catchAll();
  const survivors = CANARIES.filter((_, which) => catches[which] === null).map(({ name }) => name);
  if (process.env["CANARY_TABLE"] !== undefined) process.stdout.write(formatTable(catches));
  expect(survivors).toEqual([]);
}, 900_000);

async function catchAll(): Promise<readonly (Catch | null)[]> {
  const catches: (Catch | null)[] = CANARIES.map(() => null);
  const queue = CANARIES.keys();
  const worker = async () => {
    for (const which of queue) catches[which] = await release(which);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return catches;
}

/** The first seed that notices the canary, of those from the one that is known to, or null. Rejects where it cannot be planted. */
async function release(which: number): Promise<Catch | null> {
  const firstSeed = process.env["CANARY_TABLE"] === undefined ? (CANARIES[which]?.seed ?? 1) : 1;
  const command = [process.execPath, RUNNER, String(which), String(SEEDS_MAX), String(firstSeed)];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (exitCode !== 0) throw new Error(`${CANARIES[which]?.name}: ${err}`);
  // run-canary.ts prints only this.
  return JSON.parse(out) as Catch | null;
}

function formatTable(catches: readonly (Catch | null)[]): string {
  const rows = CANARIES.map(({ name, story }, which) => {
    const caught = catches[which] ?? null;
    if (caught !== null && story !== undefined) return `| ${name} | a story | ${story} |`;
    return `| ${name} | ${caught?.seed ?? "-"} | ${caught?.promise ?? "survives"} |`;
  });
  return `| planted mistake | first seed | broken promise |\n|---|---|---|\n${rows.join("\n")}\n`;
}
