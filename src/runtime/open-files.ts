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
/** Callers that keep their connection open. */
const SERVING_MOST = 1_000;

export interface OpenFilesOf {
  readonly hasStores: boolean;
  readonly delivers: boolean;
  readonly serves: boolean;
}

/**
 * Compares the number of files and sockets that the kernel lets this process open (`ulimit -n`) with its possible
 * needs: returns a warning if it may need more, or null.
 *
 * @throws ConfigurationError if it could not even start.
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

/**
 * Returns the hard limit: the runtime raises the soft one to it. Null: the system does not report it (other than
 * Linux).
 */
function openFilesMax(): number | null {
  try {
    const [, max] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return max === undefined ? null : Number(max);
  } catch {
    return null;
  }
}

/**
 * Whether this process can open another file: otherwise new connections and files fail while existing ones seem well.
 */
export const openFilesProbe: ReadinessProbe = {
  name: "file descriptors",
  async check() {
    const file = await open("/dev/null");
    await file.close();
  },
};
