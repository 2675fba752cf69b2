import { readFileSync } from "node:fs";

/** A package in bun.lock; its key is the path of names under which it is installed. */
export interface LockedPackage {
  readonly name: string;
  readonly version: string;
  /** As in node_modules of the project, "node_modules/a" or "node_modules/a/node_modules/b". */
  readonly folder: string;
  /** A build for one kind of machine, which others do not install. */
  readonly isPlatformBuild: boolean;
  readonly manifest: LockedManifest;
}

interface LockedManifest {
  readonly dependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
  readonly optionalPeers?: readonly string[];
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
}

type Names = Readonly<Record<string, string>>;

interface Lock {
  readonly workspaces: { readonly "": { readonly dependencies: Names; readonly devDependencies: Names } };
  readonly packages: Readonly<Record<string, readonly [string, string, LockedManifest]>>;
}

const ROOT = new URL("..", import.meta.url).pathname;

/** Returns the packages that the program needs, and those that only its developers need, each by name. */
export function lockedPackages(): {
  readonly production: readonly LockedPackage[];
  readonly development: readonly LockedPackage[];
} {
  // The file's own format, version 2; the types above match what Bun writes there.
  const lock = Bun.JSONC.parse(readFileSync(`${ROOT}/bun.lock`, "utf8")) as Lock;
  const { dependencies, devDependencies } = lock.workspaces[""];
  const needed = reachable(lock, Object.keys(dependencies));
  const others = reachable(lock, Object.keys(devDependencies)).filter(
    ({ folder }) => !needed.some((each) => each.folder === folder),
  );
  return { production: sorted(needed), development: sorted(others) };
}

function sorted(packages: readonly LockedPackage[]): readonly LockedPackage[] {
  return packages.toSorted((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

/** Returns the packages of these names and all of their dependencies. */
function reachable(lock: Lock, roots: readonly string[]): readonly LockedPackage[] {
  const found = new Map<string, LockedPackage>();
  const open = roots.map((name) => keyFor(lock, "", name));
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    if (key === null || found.has(key)) continue;
    const locked = findPackage(lock, key);
    found.set(key, locked);
    // Its own dependencies are also missing on machines of another kind.
    if (locked.isPlatformBuild) continue;
    const { manifest } = locked;
    const peers = Object.keys(manifest.peerDependencies ?? {}).filter(
      (name) => manifest.optionalPeers?.includes(name) !== true,
    );
    const names = [...Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }), ...peers];
    for (const name of names) open.push(keyFor(lock, key, name));
  }
  return [...found.values()];
}

/** Resolves `name` for the package under `key`: below itself, or below the nearest enclosing package. */
function keyFor(lock: Lock, key: string, name: string): string | null {
  for (let parents = namesIn(key); ; parents = parents.slice(0, -1)) {
    const candidate = [...parents, name].join("/");
    if (candidate in lock.packages) return candidate;
    // An optional package that the lock leaves out.
    if (parents.length === 0) return null;
  }
}

function namesIn(key: string): readonly string[] {
  return key.match(/@[^/]+\/[^/]+|[^@/][^/]*/g) ?? [];
}

function findPackage(lock: Lock, key: string): LockedPackage {
  const locked = lock.packages[key];
  if (locked === undefined) throw new Error(`bun.lock has no ${key}`);
  const [id, , manifest] = locked;
  const at = id.lastIndexOf("@");
  return {
    name: id.slice(0, at),
    version: id.slice(at + 1),
    folder: namesIn(key)
      .map((name) => `node_modules/${name}`)
      .join("/"),
    isPlatformBuild: manifest.os !== undefined || manifest.cpu !== undefined,
    manifest,
  };
}
