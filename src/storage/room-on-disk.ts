import { existsSync, readdirSync, statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../domain/errors.ts";
import { diskLimits } from "./limits.ts";

const MIB = 1024 * 1024;
/** The size of a new PostgreSQL (40 MiB, 1,000 files), and one more file of its write-ahead log. */
const NEW_REGISTRY = { bytes: 40 * MIB, files: 1_200 };
/** For a start's other writes: the next file of the write-ahead log, and the schema's next steps. */
const EVERY_START = { bytes: 16 * MIB, files: 200 };
/** For a process whose stores are servers: secrets. */
const WITHOUT_STORES = { bytes: MIB, files: 20 };

/** The stores in the data folder. */
export interface StoresInFolder {
  readonly queue: boolean;
  readonly registry: boolean;
  readonly eventStore: boolean;
}

/**
 * Refuses a start for which its disk has too little space, before any file is created or migrated: engines that meet a
 * full disk leave files that they cannot read later.
 *
 * @throws ConfigurationError
 */
export function requireRoom(home: string, stores: StoresInFolder): void {
  const disk = measureDisk(home);
  // Some file systems do not report it.
  if (disk === null) return;
  const needed = neededIn(home, stores, disk.bytes);
  if (disk.freeBytes >= needed.bytes && disk.freeFiles >= needed.files) return;
  const isFiles = disk.freeBytes >= needed.bytes;
  const [free, need] = isFiles
    ? [`${disk.freeFiles} free inodes`, `${needed.files}`]
    : [`${mib(Math.floor(disk.freeBytes / MIB), disk.freeBytes)} free`, `${Math.ceil(needed.bytes / MIB)} MiB`];
  throw new ConfigurationError(
    `the disk of ${home} has ${free}, and a start needs ${need} there: make room, or set WAYBILL_HOME to a folder on a ` +
      "larger disk; nothing was changed",
  );
}

/** Whether a server that writes in the folder can start again: less space than this is used up by its next file. */
export function hasRoomToWrite(folder: string): boolean {
  const disk = measureDisk(folder);
  return disk === null || (disk.freeBytes >= EVERY_START.bytes && disk.freeFiles > 0);
}

function mib(whole: number, bytes: number): string {
  return whole > 0 ? `${whole} MiB` : `${Math.floor(bytes / 1024)} KiB`;
}

function neededIn(home: string, { queue, registry, eventStore }: StoresInFolder, diskBytes: number) {
  if (!queue && !registry && !eventStore) return WITHOUT_STORES;
  let { bytes, files } = EVERY_START;
  if (registry && isNew(join(home, "postgres"))) {
    bytes += NEW_REGISTRY.bytes;
    files += NEW_REGISTRY.files;
  }
  // It refuses writes while less than that is free, even its first rows.
  if (eventStore && isNew(join(home, "clickhouse"))) {
    bytes += Math.min(diskLimits.freeBytesKept, Math.floor(diskBytes * diskLimits.freeShareKept));
  }
  return { bytes, files };
}

function isNew(folder: string): boolean {
  if (!existsSync(folder)) return true;
  try {
    return readdirSync(folder).length === 0;
  } catch {
    // Opening the store will report the reason.
    return false;
  }
}

function measureDisk(home: string) {
  let folder = home;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const { blocks, bavail, bsize, files, ffree } = statfsSync(folder);
  if (blocks === 0) return null;
  return {
    bytes: blocks * bsize,
    freeBytes: bavail * bsize,
    freeFiles: files === 0 ? Number.POSITIVE_INFINITY : ffree,
  };
}
