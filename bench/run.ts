/**
 * `npm run bench` measures Waybill beside what one would build instead, prints a table and writes it as JSON.
 *
 *   npm run bench -- [micro|accept|dispatch|whole ...] [--rounds N] [--seconds N] [--smoke] [--json FILE]
 *
 * Variants take turns within one run, each round in a fresh process on the same Redis with the same durability
 * (append-only file, `appendfsync always`); a ratio is the median of the rounds' own ratios. The machine's cores are
 * shared by server, Redis and load driver, so compare ratios, not absolute figures of different machines.
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { type AcceptRound, type AcceptTarget, acceptTargets } from "./load/accept.ts";
import { dispatchTargets } from "./load/dispatch.ts";
import { describeLatency } from "./load/driver.ts";
import { median, round } from "./load/latency.ts";
import { wholePath } from "./load/whole-path.ts";

const SECTIONS = ["micro", "accept", "dispatch", "whole"] as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    jobs: { type: "string", default: "60000" },
    rate: { type: "string", default: "500" },
    smoke: { type: "boolean", default: false },
    json: { type: "string", default: "bench-results.json" },
  },
});
const rounds = values.smoke ? 1 : Number(values.rounds);
const seconds = values.smoke ? 1 : Number(values.seconds);
const jobs = values.smoke ? 3000 : Number(values.jobs);
const rate = values.smoke ? 50 : Number(values.rate);
const chosen = SECTIONS.filter((section) => positionals.length === 0 || positionals.includes(section));

const results: Record<string, unknown> = {
  at: new Date().toISOString(),
  bun: Bun.version,
  cpus: cpus().length,
  cpu: cpus()[0]?.model ?? "unknown",
  rounds,
  seconds,
};

async function micro(): Promise<void> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/micro/micro.ts`], {
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Error("the micro-benchmarks failed");
}

async function accept(): Promise<void> {
  const { targets, stop } = await acceptTargets();
  const report: Record<string, unknown> = {};
  for (const connections of [64, 256]) report[`connections ${connections}`] = await acceptWith(targets, connections);
  await stop();
  results["accept"] = report;
}

async function acceptWith(targets: readonly AcceptTarget[], connections: number) {
  const runs = new Map(targets.map((target) => [target.name, [] as AcceptRound[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const target of targets) runs.get(target.name)?.push(await target.round({ connections, seconds, rate: null }));
  }
  const perSecond = (name: AcceptTarget["name"]) => (runs.get(name) ?? []).map((one) => one.perSecond);
  // An open loop at half of what the baseline takes: latency without its own queue.
  const half = Math.max(10, Math.round(median(perSecond("bullmq")) / 2));
  const open = new Map<string, AcceptRound>();
  for (const target of targets) open.set(target.name, await target.round({ connections, seconds, rate: half }));

  console.log(`\nAccept: POST /v1/send/email, ${connections} connections, ${rounds} rounds of ${seconds} s\n`);
  console.table([...runs].map(([name, all]) => acceptRow(name, all, { half, calm: open.get(name) })));
  const ratios = ratiosOf(runs.get("waybill") ?? [], runs.get("bullmq") ?? [], (one) => one.perSecond);
  console.log(`waybill / bullmq: ${describeRatios(ratios)}`);
  return { rounds: Object.fromEntries(runs), openLoop: Object.fromEntries(open), ratios };
}

function acceptRow(
  name: string,
  all: readonly AcceptRound[],
  { half, calm }: { readonly half: number; readonly calm: AcceptRound | undefined },
): Record<string, string | number> {
  return {
    server: name,
    "requests/s": median(all.map((one) => one.perSecond)),
    "p50 / p99": `${median(all.map((one) => one.latencyMs.p50))} / ${median(all.map((one) => one.latencyMs.p99))} ms`,
    [`p50 / p99 at ${half}/s, open loop`]: calm === undefined ? "" : describeLatency(calm.latencyMs),
    "server CPU µs": median(all.map((one) => one.serverMicros)),
    "Redis bytes a job": median(all.map((one) => one.bytesPerJob ?? Number.NaN)),
    refused: all.reduce((sum, one) => sum + one.refused, 0),
  };
}

async function dispatch(): Promise<void> {
  const { targets, stop } = await dispatchTargets();
  const runs = new Map(targets.map((target) => [target.name, [] as number[]]));
  for (let i = 0; i < rounds; i += 1) {
    for (const target of targets) runs.get(target.name)?.push(await target.round(jobs));
  }
  await stop();
  console.log(`\nDispatch: ${jobs} queued jobs, a channel that does nothing, ${rounds} rounds\n`);
  console.table([...runs].map(([worker, all]) => ({ worker, "jobs/s": median(all) })));
  const others = [...runs].filter(([name]) => name !== "waybill");
  const [best = "", bestRuns = []] = others.sort(([, a], [, b]) => median(b) - median(a))[0] ?? [];
  const ratios = ratiosOf(runs.get("waybill") ?? [], bestRuns, (one) => one);
  console.log(`waybill / ${best}: ${describeRatios(ratios)}`);
  results["dispatch"] = { rounds: Object.fromEntries(runs), best, ratios };
}

async function whole(): Promise<void> {
  const result = await wholePath(seconds, rate);
  console.log(`\nWhole path: the embedded default at ${rate} requests/s for ${seconds} s, open loop\n`);
  console.table([
    {
      "accepted/s": result.accept.perSecond,
      "accept p50 / p99": describeLatency(result.accept.latencyMs),
      "sent p50 / p99": describeLatency(result.sentMs),
      jobs: result.jobs,
      "s to the last event": round(result.settledSeconds),
    },
  ]);
  results["whole"] = result;
}

function ratiosOf<T>(ours: readonly T[], theirs: readonly T[], valueOf: (one: T) => number): number[] {
  return ours.flatMap((one, i) => {
    const other = theirs[i];
    return other === undefined ? [] : [round(valueOf(one) / valueOf(other))];
  });
}

function describeRatios(ratios: readonly number[]): string {
  return `${round(median(ratios))}x [${Math.min(...ratios)} .. ${Math.max(...ratios)}]`;
}

const run = { micro, accept, dispatch, whole };
for (const section of chosen) await run[section]();
await Bun.write(values.json, `${JSON.stringify(results, null, 2)}\n`);
console.log(`\nwritten to ${values.json}`);
