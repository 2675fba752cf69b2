import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";

/** The CPU time and memory that a process has used so far, as Linux reports them (proc(5)). */
export interface ProcessUse {
  readonly pid: number;
  /** Its purpose, as far as its command line shows it. */
  readonly label: string;
  readonly cpuMs: number;
  /** Of that, its first thread, which is the event loop in a JavaScript process. */
  readonly loopMs: number;
  readonly rssBytes: number;
}

/** CPU time by label, in microseconds per job. */
export interface CpuShare {
  readonly label: string;
  readonly micros: number;
  readonly loopMicros: number;
}

const TICK_MS = 10;
const PAGE_BYTES = 4096;

/** A process and all its descendants. */
export async function processTree(root: number): Promise<readonly ProcessUse[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = new Map<number, Stat>();
  for (const pid of pids) {
    const stat = await readStat(`/proc/${pid}/stat`);
    if (stat !== null) stats.set(pid, stat);
  }
  const found: number[] = stats.has(root) ? [root] : [];
  for (let at = 0; at < found.length; at += 1) {
    for (const [pid, stat] of stats) if (stat.parent === found[at]) found.push(pid);
  }
  const uses = await Promise.all(
    found.map(async (pid): Promise<ProcessUse[]> => {
      const stat = stats.get(pid);
      const first = await readStat(`/proc/${pid}/task/${pid}/stat`);
      if (stat === undefined || first === null) return [];
      return [{ pid, label: await readLabel(pid), cpuMs: stat.cpuMs, loopMs: first.cpuMs, rssBytes: stat.rssBytes }];
    }),
  );
  return uses.flat();
}

/** All trees, without duplicates. */
export async function processTrees(roots: readonly number[]): Promise<readonly ProcessUse[]> {
  const all = (await Promise.all(roots.map(processTree))).flat();
  return [...new Map(all.map((use) => [use.pid, use])).values()];
}

/** Usage between two samples, per job. Processes with the same label are summed. */
export function cpuShares(before: readonly ProcessUse[], after: readonly ProcessUse[], jobs: number): CpuShare[] {
  const earlier = new Map(before.map((use) => [use.pid, use]));
  const sums = new Map<string, { micros: number; loopMicros: number }>();
  for (const { pid, label, cpuMs, loopMs } of after) {
    const start = earlier.get(pid);
    const sum = sums.get(label) ?? { micros: 0, loopMicros: 0 };
    sum.micros += ((cpuMs - (start?.cpuMs ?? 0)) * 1000) / jobs;
    sum.loopMicros += ((loopMs - (start?.loopMs ?? 0)) * 1000) / jobs;
    sums.set(label, sum);
  }
  return [...sums].map(([label, sum]) => ({ label, ...sum }));
}

interface Stat {
  readonly parent: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
}

async function readStat(path: string): Promise<Stat | null> {
  const text = await readFile(path, "utf8").catch(() => "");
  const fields = text.slice(text.lastIndexOf(") ") + 2).split(" ");
  if (fields.length < 22) return null;
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  return { parent: Number(fields[1]), cpuMs, rssBytes: Number(fields[21]) * PAGE_BYTES };
}

const NAMES: Readonly<Record<string, string>> = { "redis-server": "Redis", postgres: "PostgreSQL" };

async function readLabel(pid: number): Promise<string> {
  const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
  const program = basename((words[0] ?? "").split(/[ :]/)[0] ?? "");
  const script = words.findIndex((word) => word.endsWith(".ts"));
  if (script === -1) return NAMES[program] ?? program;
  // The words after the script tell several such processes apart; a long word is data, not a name.
  const rest = words.slice(script + 1).filter((word) => word !== "" && word.length < 40);
  return [basename(words[script] ?? ""), ...rest].join(" ");
}
