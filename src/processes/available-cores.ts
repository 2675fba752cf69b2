import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";

const CGROUPS = "/sys/fs/cgroup";

/**
 * Returns the whole cores that this process may use: the cores that it may run on, limited by the quotas of its control
 * groups.
 */
export function availableCores(): number {
  const granted = Math.min(...quotasOfGroups(), quotaOfFormerGroup());
  return Math.max(1, Math.min(availableParallelism(), Math.floor(granted)));
}

/** Reads the quotas of control groups, version 2: each group around this process may have one. */
function quotasOfGroups(): readonly number[] {
  const [, path = "/"] = /^0::(\/.*)$/m.exec(readText("/proc/self/cgroup")) ?? [];
  const quotas: number[] = [];
  for (let group = path; ; group = dirname(group)) {
    quotas.push(parseQuota(readText(join(CGROUPS, group, "cpu.max"))));
    if (group === "/" || group === ".") return quotas;
  }
}

/** Reads the quota of control groups, version 1, as containers see their own group. */
function quotaOfFormerGroup(): number {
  const [quota, period] = ["quota", "period"].map((name) => readText(`${CGROUPS}/cpu/cpu.cfs_${name}_us`).trim());
  return parseQuota(`${quota} ${period}`);
}

/** Parses `200000 100000`: this many µs in each period. Any other text is no bound. */
export function parseQuota(text: string): number {
  const [, quota, period] = /^(\d+) (\d+)\s*$/.exec(text) ?? [];
  return quota === undefined || Number(period) === 0 ? Number.POSITIVE_INFINITY : Number(quota) / Number(period);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // Not Linux, or no such group: no bound.
    return "";
  }
}
