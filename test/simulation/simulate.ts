import { type RunResult, SimulationFailure, simulate } from "./simulation.ts";

/*
 * `bun run simulate`: runs seeds of the engine's simulation, and says how to replay the first that fails.
 *
 *   --seed N        the first seed (default: 1)
 *   --seeds K       how many (default: 1)
 *   --steps M       length of the phase with faults (default: drawn from the seed)
 *   --soak MINUTES  seeds until the time is over, from a chance one on
 */

interface Wanted {
  readonly seed: number;
  readonly seeds: number;
  readonly steps: number | null;
  readonly soakMinutes: number | null;
}

const wanted = readArguments(process.argv.slice(2));
const startedMs = performance.now();
const results: RunResult[] = [];
try {
  for (let seed = wanted.seed; isWanted(seed); seed += 1) results.push(simulate(seed, wanted.steps));
} catch (error) {
  if (!(error instanceof SimulationFailure)) throw error;
  console.log(error.message);
  process.exitCode = 1;
}
summarise();

function isWanted(seed: number): boolean {
  if (wanted.soakMinutes === null) return seed < wanted.seed + wanted.seeds;
  return performance.now() - startedMs < wanted.soakMinutes * 60_000;
}

function summarise(): void {
  const seconds = (performance.now() - startedMs) / 1000;
  const sum = (count: (result: RunResult) => number) => results.reduce((total, result) => total + count(result), 0);
  const [only] = results;
  if (results.length === 1 && only !== undefined) console.log(`trace ${only.hash}`);
  console.log(
    `${results.length} seeds without a violation in ${seconds.toFixed(1)} s (${(results.length / seconds).toFixed(1)} a second)`,
  );
  console.log(
    [
      `${(sum((r) => r.virtualMs) / 3_600_000).toFixed(1)} virtual hours`,
      `${sum((r) => r.steps)} steps`,
      `${sum((r) => r.accepted)} jobs`,
      `${sum((r) => r.events)} events`,
      `${sum((r) => r.crashes)} crashes`,
      `${sum((r) => r.pauses)} pauses`,
      `${sum((r) => r.drains)} drains`,
      `${sum((r) => r.restarts)} restarts of the queue`,
      `${sum((r) => r.lostCalls)} lost calls`,
      `${sum((r) => r.repeats)} messages handed over again`,
      `${sum((r) => r.reports)} reports`,
      `${sum((r) => r.reportsKept)} of them kept until their job ended`,
      `${sum((r) => r.endedByReport)} jobs ended by one`,
      `${sum((r) => r.retries)} failed jobs tried again`,
    ].join(", "),
  );
}

function readArguments(args: readonly string[]): Wanted {
  const findValue = (name: string): number | null => {
    const at = args.indexOf(name);
    if (at === -1) return null;
    const value = Number(args[at + 1]);
    if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} takes a number above 0`);
    return value;
  };
  const soakMinutes = findValue("--soak");
  const chance = crypto.getRandomValues(new Uint32Array(1))[0] ?? 1;
  return {
    seed: findValue("--seed") ?? (soakMinutes === null ? 1 : chance),
    seeds: findValue("--seeds") ?? 1,
    steps: findValue("--steps"),
    soakMinutes,
  };
}
