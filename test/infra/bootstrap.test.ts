import { afterEach, expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-bootstrap-"));
  folders.push(folder);
  return folder;
}

/** Copies the files of a checkout that the start needs, without installed packages. */
async function freshCheckout(): Promise<string> {
  const folder = await freshFolder();
  for (const part of ["package.json", "bun.lock", "bunfig.toml", "infra"]) {
    await cp(join(ROOT, part), join(folder, part), { recursive: true });
  }
  return folder;
}

async function bootstrap(checkout: string, args: readonly string[], environment: Record<string, string | undefined>) {
  const child = Bun.spawn(["/bin/sh", join(checkout, "infra/bootstrap.sh"), ...args], {
    cwd: tmpdir(),
    env: environment,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { pid: child.pid, out, err, exitCode };
}

/** A PATH with the tools that the script itself needs, and no package manager, no Redis, no Node.js. */
async function barePath(): Promise<string> {
  const folder = await freshFolder();
  const tools = ["sed", "cat", "cksum", "dirname", "mkdir", "flock", "id", "mv"];
  for (const tool of tools) await symlink(Bun.which(tool) ?? `/usr/bin/${tool}`, join(folder, tool));
  return folder;
}

async function pathWithBun(): Promise<string> {
  const folder = await barePath();
  await symlink(process.execPath, join(folder, "bun"));
  return folder;
}

/** The checkout counts as installed: its dependencies are there, and the stamp says so. */
async function installedCheckout(): Promise<string> {
  const checkout = await freshCheckout();
  await mkdir(join(checkout, "node_modules"));
  const sums = Bun.spawnSync(["cksum", "package.json", "bun.lock"], { cwd: checkout }).stdout;
  await Bun.write(join(checkout, "node_modules/.installed"), sums);
  return checkout;
}

test("with everything in place the script runs the command in its own place and prints nothing", async () => {
  const checkout = await installedCheckout();
  const environment = { PATH: await pathWithBun() };
  const script = "console.log(process.pid, process.argv.at(-1)); process.exit(7)";
  const { pid, out, err, exitCode } = await bootstrap(checkout, ["-e", script, "an argument"], environment);
  expect(out).toBe(`${pid} an argument\n`);
  expect(err).toBe("");
  expect(exitCode).toBe(7);
});

test("with --in, the script runs in that folder, without what a project there means for itself", async () => {
  const checkout = await installedCheckout();
  await Bun.write(
    join(checkout, "where.ts"),
    "console.log(process.cwd(), process.env.DATABASE_URL, ...process.argv.slice(2))",
  );
  const project = await freshFolder();
  await Bun.write(join(project, ".env"), "DATABASE_URL=postgres://of-the-project\n");
  await Bun.write(join(project, "bunfig.toml"), `preload = ["./missing.ts"]\n`);
  const environment = { PATH: await pathWithBun() };
  const { out, err } = await bootstrap(checkout, ["--in", project, "where.ts", "an argument"], environment);
  expect([out, err]).toEqual([`${project} undefined an argument\n`, ""]);
});

test("a missing redis-server that cannot be installed is reported in one line that says what to do", async () => {
  const checkout = await installedCheckout();
  const environment = { PATH: await pathWithBun() };
  const { err, exitCode } = await bootstrap(checkout, ["src/main.ts"], environment);
  expect(err).toBe(
    "waybill: redis-server 7 or later is missing: install it (Debian and Ubuntu: apt-get install redis-server) or set REDIS_URL\n",
  );
  expect(exitCode).toBe(1);
});

test("without npm and the right Bun, the script says which is missing", async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, "node_modules/bun-types/package.json"), "utf8"));
  const { err, exitCode } = await bootstrap(await freshCheckout(), ["--version"], { PATH: await barePath() });
  expect(err).toBe(`waybill: needs npm, or Bun ${version} in PATH; install one of them\n`);
  expect(exitCode).toBe(1);
});

// Downloads Bun and all dependencies: about a minute on a slow line.
test.if(process.env["CI"] === "true")(
  "with only Node.js and npm, two concurrent first starts install once, and the next start needs no network",
  async () => {
    const checkout = await freshCheckout();
    const bare = await barePath();
    // The machine has npm, but not Bun.
    for (const tool of ["node", "npm", "env", "sh", "uname"]) await symlink(Bun.which(tool) ?? "", join(bare, tool));
    // The home folder and the rest configure this machine's access to the registry.
    const temporary = await freshFolder();
    const environment = { ...process.env, PATH: bare, TMPDIR: temporary };
    const { packageManager } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
    const first = await Promise.all([1, 2].map(() => bootstrap(checkout, ["--version"], environment)));
    expect(first.map(({ out }) => `bun@${out.trim()}`)).toEqual([packageManager, packageManager]);
    const said = first.map(({ err }) => err).join("");
    expect(said.match(/installing Bun/g)).toHaveLength(1);
    expect(said.match(/installing the dependencies/g)).toHaveLength(1);
    // An install script of a package that reports to its authors leaves this behind.
    expect((await readdir(temporary)).filter((name) => name.startsWith("scarf"))).toEqual([]);
    const unreachable = { npm_config_registry: "http://127.0.0.1:9/", BUN_CONFIG_REGISTRY: "http://127.0.0.1:9/" };
    const next = await bootstrap(checkout, ["-e", "await import('ioredis')"], { ...environment, ...unreachable });
    expect(next).toMatchObject({ out: "", err: "", exitCode: 0 });
  },
  300_000,
);
