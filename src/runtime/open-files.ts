import { readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { ConfigurationError } from "../domain/errors.ts";
import type { ReadinessProbe } from "../domain/jobs/report.ts";

/** The stores in the data folder: 150 at rest, most of them the registry's tables; as many again while ClickHouse merges. */
const STORES = { least: 200, most: 350 };
/** Standard streams, event loop, name servers, and the connections to servers and other processes. */
const PROCESS = { least: 50, most: 100 };
/** Connections to mail servers (`smtp-pools.ts`) and other providers. */
const DELIVERING_MOST = 2_200;
/** Callers who keep their connection open. */
const SERVING_MOST = 1_000;

export interface OpenFilesOf {
  readonly hasStores: boolean;
  readonly delivers: boolean;
  readonly serves: boolean;
}

/**
 * How many files and sockets the kernel lets this process have open (`ulimit -n`), beside what it can come to need: a warning
 * where that is more, or null.
 *
 * @throws ConfigurationError where it could not even start.
 */
export function openFilesDoubt({ hasStores, delivers, serves }: OpenFilesOf, max = openFilesMax()): string | null {
  if (max === null) return null;
  const least = PROCESS.least + (hasStores ? STORES.least : 0);
  if (max < least) {
    throw new ConfigurationError(
      `this process may have ${max} files and sockets open, and needs ${least} to start: raise the limit (ulimit -n)`,
    );
  }
  const parts = [
    [PROCESS.most, "itself"],
    [hasStores ? STORES.most : 0, "its stores"],
    [delivers ? DELIVERING_MOST : 0, "mail servers and providers"],
    [serves ? SERVING_MOST : 0, "callers"],
  ] as const;
  const most = parts.reduce((sum, [count]) => sum + count, 0);
  if (max >= most) return null;
  const named = parts.flatMap(([count, what]) => (count === 0 ? [] : [`${count} for ${what}`])).join(", ");
  return `this process may have ${max} files and sockets open, and can need ${most} (${named}): raise the limit (ulimit -n)`;
}

/** The hard limit: the runtime raises the soft one to it. Null: the system does not say (elsewhere than Linux). */
function openFilesMax(): number | null {
  try {
    const [, max] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return max === undefined ? null : Number(max);
  } catch {
    return null;
  }
}

/** Whether this process can open another file: without, new connections and files fail while the ones it has seem well. */
export const openFilesProbe: ReadinessProbe = {
  name: "file descriptors",
  async check() {
    const file = await open("/dev/null");
    await file.close();
  },
};
