import { cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../support/command.ts";
import { Undo } from "../support/undo.ts";
import { auditIncoming } from "./incoming-audit.ts";
import { inspect } from "./inspection.ts";
import type { Verdict } from "./judge.ts";
import { SoakLoad } from "./load.ts";
import { makeWebhooks, openWorld } from "./open-world.ts";
import type { SoakOptions } from "./options.ts";
import { auditTokens } from "./registry-audit.ts";
import { holds, type SoakReport } from "./report.ts";
import { Resources } from "./resources.ts";
import type { SoakWorld } from "./soak-world.ts";
import { Weather } from "./weather.ts";

const MINUTE_MS = 60_000;
const SAY_EVERY_MS = 60_000;
/** Violations that the book-keeper notes at once, beside those that `judge` finds at the end. */
const NOTED = [
  "the service is ready again after each fault",
  "a program that is told to end does so in order",
  "an operator's command works beside the server",
  "a revoked key is refused",
  "what is wrong is refused",
  "every event can be read",
  "who is erased is found nowhere",
  "the soak itself works",
];

/**
 * Runs the program under load and trouble, then checks every promise against the records. Ends all parts that it
 * started.
 */
export async function runSoak(
  options: SoakOptions,
  say: (text: string) => void,
  over: AbortSignal,
): Promise<SoakReport> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-soak-"));
  const undo = new Undo();
  let report: SoakReport | null = null;
  try {
    say(`seed ${options.seed}, in ${folder}`);
    const world = await openWorld(options, folder, undo);
    report = await soak(world, say, over);
  } finally {
    const logs = report !== null && holds(report) ? null : await keepLogs(folder, options);
    if (logs !== null) say(`the logs are in ${logs}`);
    if (report !== null) report = { ...report, logs };
    await undo.run();
    await rm(folder, { recursive: true, force: true });
  }
  return report;
}

async function soak(world: SoakWorld, say: (text: string) => void, over: AbortSignal): Promise<SoakReport> {
  const { options, book, faults, api, mail } = world;
  await makeWebhooks(world);
  const resources = new Resources(world);
  const load = new SoakLoad(world);
  const weather = new Weather(world, resources, say);
  const startedMs = performance.now();
  load.start();
  weather.start();
  await until(startedMs + options.minutes * MINUTE_MS, over, () => say(progress(world)));
  const minutes = (performance.now() - startedMs) / MINUTE_MS;
  await weather.stop();
  await load.stop(MINUTE_MS);
  mail.writeLog();
  say(`the load has ended after ${minutes.toFixed(1)} minutes; what is under way may end. ${progress(world)}`);
  const verdicts = [...(await inspect(world, countDispatchers(world), options.drainMinutes * MINUTE_MS, say))];
  verdicts.push(await versions(world, load), await auditIncoming(world), resources.verdict());
  const code = await world.service.end();
  await world.side?.end();
  if (code !== 0) book.misdeed("a program that is told to end does so in order", `at the end: code ${code}`);
  verdicts.push(await auditTokens(world), ...(await restored(world)));
  for (const promise of NOTED) {
    const broken = book.misdeeds.filter((one) => one.promise === promise).map(({ what }) => what);
    verdicts.push({ promise, checked: faults.spans.length, broken, note: "" });
  }
  const { only: _only, without: _without, ...shown } = options;
  return {
    options: shown,
    minutes,
    load: loadFigures(world, load),
    statuses: Object.fromEntries(Array.from(api.statuses).sort(([a], [b]) => a - b)),
    failures: Object.fromEntries(api.failures),
    faults: faults.spans,
    verdicts,
    slopes: resources.slopes(),
    points: resources.points,
    logs: null,
  };
}

async function until(endMs: number, over: AbortSignal, everyMinute: () => void): Promise<void> {
  let saidMs = performance.now();
  while (performance.now() < endMs && !over.aborted) {
    await Bun.sleep(500);
    if (performance.now() - saidMs < SAY_EVERY_MS) continue;
    saidMs = performance.now();
    everyMinute();
  }
}

function progress({ book, api }: SoakWorld): string {
  const broken =
    book.misdeeds.length === 0 ? "" : `, NOTED: ${book.misdeeds.at(-1)?.promise}: ${book.misdeeds.at(-1)?.what}`;
  return `${book.count("accepted")} accepted, ${book.arrivals.size} arrived, ${api.statuses.get(0) ?? 0} calls without an answer${broken}`;
}

/** Processes that deliver, for the bound of what deaths may repeat. */
function countDispatchers({ options: { processes }, side }: SoakWorld): number {
  const own = Number(/dispatcher=(\d+)/.exec(processes)?.[1] ?? Math.max(1, Number(processes) - 1));
  return (Number.isFinite(own) ? own : 1) + Number(side !== null);
}

async function versions(world: SoakWorld, load: SoakLoad): Promise<Verdict> {
  const { checked, broken } = await load.wallet.wrongVersions(world);
  const note = `${world.wallet.complaints.length} complaints of devices`;
  return { promise: "each update of a pass is one version", checked, broken, note };
}

/** The last backup can be restored: all engines open it, and the queued jobs are there. */
async function restored({ folder, stores, faults, keys }: SoakWorld): Promise<readonly Verdict[]> {
  const made = faults.spans.filter(({ kind, note }) => kind === "backup" && note === "").length;
  if (made === 0) return [];
  const home = join(stores.home, "../restored");
  const environment = { WAYBILL_HOME: home, MASTER_KEY: keys.masterKeys.join(",") };
  const { code, errors, output } = await runCommand(["restore", join(folder, "backups"), "--queued=send"], environment);
  const broken = code === 0 ? [] : [`restore ended with ${code}: ${errors}`];
  const note = output.trim().split("\n")[0] ?? "";
  return [{ promise: "a backup that was taken meanwhile can be restored", checked: made, broken, note }];
}

function loadFigures(world: SoakWorld, load: SoakLoad): Readonly<Record<string, number>> {
  const { book, receivers, service } = world;
  const by = (channel: string) =>
    book.messages.filter((one) => one.channel === channel && one.fate === "accepted").length;
  return {
    "messages asked for": book.messages.length,
    "accepted, e-mail": by("email"),
    "accepted, chat": by("whatsapp"),
    "accepted, passes and updates": by("wallet"),
    refused: book.count("refused"),
    "without an answer": book.count("unknown") + book.count("asked"),
    "arrived at a provider": book.arrivals.size,
    "calls of webhooks": receivers.calls,
    "not begun, for too much was under way": load.skipped,
    "ended by itself": service.deaths,
    ...Object.fromEntries(Array.from(load.done).sort(([a], [b]) => a.localeCompare(b))),
  };
}

async function keepLogs(folder: string, { seed }: SoakOptions): Promise<string> {
  const kept = join(tmpdir(), `waybill-soak-logs-${seed}-${Date.now()}`);
  await mkdir(kept, { recursive: true });
  for (const name of await readdir(join(folder, "logs")).catch(() => [])) {
    await cp(join(folder, "logs", name), join(kept, name));
  }
  return kept;
}
