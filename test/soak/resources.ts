import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Verdict } from "./judge.ts";
import type { Service } from "./service.ts";
import type { SoakWorld } from "./soak-world.ts";

const MIB = 1024 * 1024;
const SAMPLE_EVERY_MS = 5_000;

/** The hourly growth that a resource is allowed: a share of itself, and an amount. */
interface Bound {
  readonly share: number;
  readonly amount: number;
}

/**
 * Measured resources by name, and their bounds. The event store and the registry keep history: they grow with it. The
 * event store's engine keeps as many threads as were busy at once since its start.
 */
const BOUNDS: Readonly<Record<string, Bound>> = {
  "memory MiB": { share: 0.1, amount: 48 },
  files: { share: 0.05, amount: 12 },
  connections: { share: 0.05, amount: 12 },
  // Keys with a lifetime, of up to a day, become more for as long: they are shown, and judged by the memory that they
  // take.
  "Redis keys for good": { share: 0.1, amount: 500 },
  "Redis MiB": { share: 0.1, amount: 8 },
  "queue on disk MiB": { share: 0.2, amount: 64 },
};

/** On a shorter run a slope is meaningless: jobs leave Redis a quarter of an hour after their end. */
const JUDGED_HOURS_MIN = 0.75;
const POINTS_MIN = 5;
/** The first part of the points is warm-up. */
const WARM_UP = 0.3;

export interface ResourcePoint {
  readonly atMs: number;
  readonly values: Readonly<Record<string, number>>;
}

export interface Slope {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  readonly perHour: number;
  /** Its upper bound; null: not judged. */
  readonly bound: number | null;
}

/** Measures the service from outside: its processes in /proc, its Redis, its folder. */
export class Resources {
  readonly points: ResourcePoint[] = [];

  constructor(private readonly world: SoakWorld) {}

  /** A point: medians over that time. */
  async measure(ms: number, over: AbortSignal): Promise<void> {
    const samples: Readonly<Record<string, number>>[] = [];
    const fromMs = performance.now();
    while (performance.now() - fromMs < ms && !over.aborted) {
      samples.push(await this.sample());
      await Bun.sleep(SAMPLE_EVERY_MS);
    }
    if (samples.length === 0) return;
    const names = Object.keys(samples[0] ?? {});
    const values = Object.fromEntries(names.map((name) => [name, median(samples.map((one) => one[name] ?? 0))]));
    this.points.push({ atMs: Date.now(), values });
  }

  slopes(): readonly Slope[] {
    const warm = this.points.slice(Math.floor(this.points.length * WARM_UP));
    const [first, last] = [warm[0], warm.at(-1)];
    if (first === undefined || last === undefined) return [];
    const isJudged = warm.length >= POINTS_MIN && last.atMs - first.atMs >= JUDGED_HOURS_MIN * 3_600_000;
    return Object.keys(first.values).map((name) => {
      const bound = BOUNDS[name];
      const usual = median(warm.map(({ values }) => values[name] ?? 0));
      return {
        name,
        first: first.values[name] ?? 0,
        last: last.values[name] ?? 0,
        perHour: computeSlope(warm.map(({ atMs, values }) => [atMs / 3_600_000, values[name] ?? 0])),
        bound: bound === undefined || !isJudged ? null : usual * bound.share + bound.amount,
      };
    });
  }

  verdict(): Verdict {
    const slopes = this.slopes();
    const judged = slopes.filter(({ bound }) => bound !== null);
    const broken = judged
      .filter(({ perHour, bound }) => perHour > (bound ?? 0))
      .map(
        ({ name, perHour, bound }) => `${name} grows by ${perHour.toFixed(1)} an hour, more than ${bound?.toFixed(1)}`,
      );
    const note = judged.length === 0 ? "too short a time to judge" : "";
    return { promise: "memory, files, connections, Redis and disk are flat", checked: judged.length, broken, note };
  }

  private async sample(): Promise<Record<string, number>> {
    const { service, side, stores, book } = this.world;
    const own = await Promise.all([service, side].map((one) => (one === null ? [] : readProcesses(one))));
    const all = own.flat();
    const sum = (of: (one: ProcessUse) => number) => all.reduce((total, one) => total + of(one), 0);
    const redis = stores.servers === null ? service.redis() : stores.servers.redis.client;
    try {
      const memory = /used_memory:(\d+)/.exec(await redis.info("memory"))?.[1];
      const [, keys, expiring] = /keys=(\d+),expires=(\d+)/.exec(await redis.info("keyspace")) ?? [];
      return {
        "memory MiB": sum(({ bytes }) => bytes) / MIB,
        files: sum(({ files }) => files),
        "engine's threads": sum(({ engineThreads }) => engineThreads),
        connections: sum(({ sockets }) => sockets),
        "Redis keys for good": Number(keys) - Number(expiring),
        "Redis keys for a time": Number(expiring),
        "Redis MiB": Number(memory ?? 0) / MIB,
        "queue on disk MiB": await folderMib(join(stores.home, stores.servers === null ? "redis" : "../redis")),
        "event store MiB": await folderMib(join(stores.home, "clickhouse")),
        "registry MiB": await folderMib(join(stores.home, "postgres")),
        "disk MiB": await stores.usedMib(),
        messages: book.messages.length,
      };
    } finally {
      if (stores.servers === null) redis.disconnect();
    }
  }
}

interface ProcessUse {
  readonly bytes: number;
  /** Excludes the threads with which the event store's engine measures its own, three each. */
  readonly files: number;
  readonly engineThreads: number;
  readonly sockets: number;
}

async function readProcesses(service: Service): Promise<readonly ProcessUse[]> {
  const pids = Array.from(service.processes()).flatMap(([name, pid]) => (name === "redis" ? [] : [pid]));
  return Promise.all(pids.map((pid) => processUse(pid).catch(() => NOTHING)));
}

const NOTHING: ProcessUse = { bytes: 0, files: 0, engineThreads: 0, sockets: 0 };

async function processUse(pid: number): Promise<ProcessUse> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const open = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(open.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")));
  return {
    bytes: Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024,
    files: targets.filter((target) => !target.startsWith("/proc/")).length,
    engineThreads: targets.filter((target) => target.endsWith("/schedstat")).length,
    sockets: targets.filter((target) => target.startsWith("socket:")).length,
  };
}

async function folderMib(folder: string): Promise<number> {
  const du = Bun.spawn(["du", "-sk", folder], { stdout: "pipe", stderr: "ignore" });
  return Number(/^\d+/.exec(await new Response(du.stdout).text())?.[0] ?? 0) / 1024;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The median of the slopes between all pairs of points (Theil and Sen): single spikes do not bend it. */
function computeSlope(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes: number[] = [];
  for (const [i, [x, y]] of points.entries()) {
    for (const [x2, y2] of points.slice(i + 1)) if (x2 > x) slopes.push((y2 - y) / (x2 - x));
  }
  return median(slopes);
}
