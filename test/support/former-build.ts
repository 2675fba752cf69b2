import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
/** The files in which builds declare it, newest first. */
const FORMAT_FILES = ["src/engine/queue/format.ts", "src/journal/format.ts"];

/** An earlier build of this program, in a folder of its own. */
export interface FormerBuild {
  readonly root: string;
  remove(): Promise<void>;
}

/** Returns the commit that `ref` names; null without a history. */
export function findCommit(ref: string): string | null {
  const asked = Bun.spawnSync(["git", "rev-parse", "--verify", "--quiet", `${ref}^{commit}`], { cwd: ROOT });
  return asked.exitCode === 0 ? asked.stdout.toString().trim() : null;
}

/** Checks out the files of that commit, with today's packages, or with its own if it needs other versions. */
export async function prepareBuild(commit: string): Promise<FormerBuild> {
  const root = await mkdtemp(join(tmpdir(), "waybill-former-"));
  const archive = Bun.spawn(["sh", "-c", 'git archive "$1" | tar -x -C "$2"', "sh", commit, root], { cwd: ROOT });
  if ((await archive.exited) !== 0) throw new Error(`there are no files of ${commit}`);
  if (await hasPackagesFor(root)) await symlink(await realpath(join(ROOT, "node_modules")), join(root, "node_modules"));
  else await install(root);
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}

/** Whether the installed packages are those that the build in `root` runs with, in the same versions. */
async function hasPackagesFor(root: string): Promise<boolean> {
  const { dependencies } = await readPackage(root);
  const installed = await Promise.all(
    Object.entries(dependencies).map(async ([name, version]) => {
      const here = await readPackage(join(ROOT, "node_modules", name)).catch(() => null);
      return here?.version === version;
    }),
  );
  return installed.every(Boolean);
}

interface Package {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

async function readPackage(folder: string): Promise<Package> {
  // Every package has these, and each of our dependencies is pinned to one version.
  return (await Bun.file(join(folder, "package.json")).json()) as Package;
}

async function install(root: string): Promise<void> {
  const { exited, stderr } = Bun.spawn([process.execPath, "install", "--frozen-lockfile", "--production"], {
    cwd: root,
    stdout: "ignore",
    stderr: "pipe",
  });
  if ((await exited) !== 0)
    throw new Error(`the packages of a former build cannot be installed: ${await stderr.text()}`);
}

/** The queue format that a build writes; builds from before the number use the first one. */
export async function readQueueFormat(root = ROOT): Promise<number> {
  const file = FORMAT_FILES.map((path) => join(root, path)).find((path) => existsSync(path));
  if (file === undefined) return 1;
  return Number(/QUEUE_FORMAT = (\d+)/.exec(await Bun.file(file).text())?.[1] ?? 1);
}

/** Whether a build keeps running for a moment after a stop signal, during which balancers turn away. */
export async function hasDrainGrace(root: string): Promise<boolean> {
  return (await Bun.file(join(root, "src/config/settings.ts")).text()).includes("DRAIN_GRACE_MS");
}
