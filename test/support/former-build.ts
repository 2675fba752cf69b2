import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
/** Where builds say it: the newest first. */
const FORMAT_FILES = ["src/engine/queue/format.ts", "src/journal/format.ts"];

/** A build of this program from its history, in a folder of its own. */
export interface FormerBuild {
  readonly root: string;
  remove(): Promise<void>;
}

/** The commit that `ref` names, or null where there is no history to look into. */
export function commitOf(ref: string): string | null {
  const asked = Bun.spawnSync(["git", "rev-parse", "--verify", "--quiet", `${ref}^{commit}`], { cwd: ROOT });
  return asked.exitCode === 0 ? asked.stdout.toString().trim() : null;
}

/** The files of that commit, with the packages of today. */
export async function buildOf(commit: string): Promise<FormerBuild> {
  const root = await mkdtemp(join(tmpdir(), "waybill-former-"));
  const archive = Bun.spawn(["sh", "-c", 'git archive "$1" | tar -x -C "$2"', "sh", commit, root], { cwd: ROOT });
  if ((await archive.exited) !== 0) throw new Error(`there are no files of ${commit}`);
  await symlink(await realpath(join(ROOT, "node_modules")), join(root, "node_modules"));
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}

/** The format of the queue that a build writes; builds from before there was a number have the first one. */
export async function queueFormatOf(root = ROOT): Promise<number> {
  const file = FORMAT_FILES.map((path) => join(root, path)).find((path) => existsSync(path));
  if (file === undefined) return 1;
  return Number(/QUEUE_FORMAT = (\d+)/.exec(await Bun.file(file).text())?.[1] ?? 1);
}

/** Whether a build that is told to end goes on for a moment, so that balancers can turn away. */
export async function hasDrainGrace(root: string): Promise<boolean> {
  return (await Bun.file(join(root, "src/config/settings.ts")).text()).includes("DRAIN_GRACE_MS");
}
