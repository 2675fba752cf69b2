import { join } from "node:path";
import { ModuleImports } from "./module-imports.ts";

/** A failure or a crash is searched among that many; and they run one after another, also at the end of a run. */
const FILES_MAX = 12;
const ROOT = join(import.meta.dir, "../..");
/**
 * Imports that require a process of their own: one that starts the whole program is ended together with it, and two
 * registries that do hundreds of transactions at once have deadlines to meet.
 */
const ALONE: ReadonlySet<string> = new Set(["test/support/waybill.ts", "test/tenants/two-processes.ts"]);

/**
 * The test files that share a process, in the given order: those of a folder, except for those that `isLong` names and
 * those that must be alone. Loading the sources costs such a file more than its tests do, and so does opening a
 * registry, which a process keeps for its next file.
 */
export function processGroups(files: readonly string[], isLong: (file: string) => boolean): readonly string[][] {
  const groups: string[][] = [];
  const open = new Map<string, string[]>();
  const imports = new ModuleImports(ROOT);
  for (const file of files) {
    if (isLong(file) || reachesAny(imports, file, ALONE)) {
      groups.push([file]);
      continue;
    }
    const room = file.split("/")[1] ?? "";
    const group = open.get(room);
    if (group !== undefined && group.length < FILES_MAX) group.push(file);
    else groups.push(fresh(open, room, file));
  }
  return groups;
}

function fresh(open: Map<string, string[]>, room: string, file: string): string[] {
  const group = [file];
  open.set(room, group);
  return group;
}

function reachesAny(imports: ModuleImports, file: string, wanted: ReadonlySet<string>): boolean {
  const seen = new Set([file]);
  // A set's iterator also visits members that are added meanwhile.
  for (const each of seen) {
    if (wanted.has(each)) return true;
    for (const imported of imports.of(each)) seen.add(imported);
  }
  return false;
}
