import { afterAll, expect, test } from "bun:test";
import { mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unjudged } from "../../infra/licences.ts";
import { bin, dependencies, packageManager, version } from "../../package.json";
import { loadConfig } from "../../src/config/config.ts";
import { eventually } from "../support/eventually.ts";
import { copyMadePostgres } from "../support/made-home.ts";
import { Undo } from "../support/undo.ts";

/*
 * The npm package, as `npm pack` builds it. INSTALL_PACKAGE=true also has npm install it and everything that it needs,
 * as on a machine with Node.js alone: 800 MB, half a minute of CPU, and the registry.
 */

const ROOT = join(import.meta.dir, "../..");
const START_MS_MAX = 120_000;
/** On a machine that is busy with other tests. */
const SENT_MS_MAX = 30_000;
const INSTALL_MS_MAX = 600_000;
/** The size of a download; most of it is the program itself. */
const PACKED_MIB_MAX = 2;

const undo = new Undo();
afterAll(() => undo.run());

const folder = undo.add(await mkdtemp(join(tmpdir(), "waybill-package-")), (path) => rm(path, { recursive: true }));
const [packed] = JSON.parse(await readOutput(["npm", "pack", "--json", "--pack-destination", folder], ROOT));
const files = new Set<string>(packed.files.map(({ path }: { path: string }) => path));
const archive = join(folder, packed.filename);

async function readOutput(command: string[], cwd: string, env: Record<string, string | undefined> = process.env) {
  const child = Bun.spawn(command, { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${err}`);
  return out;
}

test("the package holds what runs, what explains it and its licence, and nothing that only makes it", () => {
  expect(packed.name).toBe("waybill");
  expect(packed.version).toBe(version);
  const needed = [
    "package.json",
    "README.md",
    "LICENSE",
    "SECURITY.md",
    "docs/README.md",
    "docs/upgrades.md",
    bin.waybill,
  ];
  expect(needed.filter((path) => !files.has(path))).toEqual([]);
  const strange = /^(test|bench|\.ci|node_modules)\/|\.test\.ts$|_snapshot\.json$|^bun\.lock$|\.(key|log|tgz)$/;
  expect([...files].filter((path) => strange.test(path))).toEqual([]);
  expect(packed.size).toBeLessThan(PACKED_MIB_MAX * 2 ** 20);
});

test("a licence that nobody has judged is refused; of alternatives one is enough, and of parts all count", () => {
  const judged = { MIT: "", ISC: "" };
  const found = (licence: string) => unjudged([{ name: "a-package", version: "1.0.0", licence }], judged).length;
  expect(["MIT", "(MIT OR GPL-3.0)", "GPL-3.0 OR ISC AND MIT"].map(found)).toEqual([0, 0, 0]);
  expect(["GPL-3.0", "MIT AND GPL-3.0", "none", "SEE LICENSE IN LICENSE", "toString"].map(found)).toEqual([
    1, 1, 1, 1, 1,
  ]);
});

/** The folder of a program whose dependencies are linked from here, and so as they are locked. */
async function linkedInstallation(): Promise<string> {
  const program = join(folder, "linked");
  const modules = join(program, "node_modules");
  await mkdir(join(modules, ".bin"), { recursive: true });
  await mkdir(join(modules, "waybill"));
  await readOutput(["tar", "-xzf", archive, "--strip-components=1", "-C", join(modules, "waybill")], program);
  await symlink(join("../waybill", bin.waybill), join(modules, ".bin/waybill"));
  for (const name of Object.keys(dependencies)) {
    await mkdir(join(modules, name, ".."), { recursive: true });
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
  // A cluster takes seconds to create.
  loadConfig({ WAYBILL_HOME: join(program, ".waybill") });
  await copyMadePostgres(join(program, ".waybill/postgres"));
  return program;
}

/** A machine's PATH with the pinned Bun in front, or without any. */
async function path({ hasBun }: { readonly hasBun: boolean }): Promise<string> {
  const tools = await mkdtemp(join(folder, "tools-"));
  for (const tool of ["node", "npm", "npx"]) await symlink(Bun.which(tool) ?? "", join(tools, tool));
  if (hasBun) await symlink(process.execPath, join(tools, "bun"));
  return `${tools}:/usr/bin:/bin`;
}

/** Starts the package installed in `program`, and reads its first screen. */
async function start(program: string, command: string[], environment: Record<string, string>) {
  const child = Bun.spawn(command, {
    cwd: program,
    env: { ...environment, PORT: "0", PROCESSES: "1", LOG_LEVEL: "warn" },
    stdout: "pipe",
    stderr: "inherit",
  });
  undo.add(child, () => child.kill("SIGKILL"));
  let screen = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    screen += decoder.decode(chunk, { stream: true });
    if (/curl[^]*-d .*\n/.test(screen)) break;
  }
  const url = /API +(http:\S+)/.exec(screen)?.[1];
  if (url === undefined) throw new Error(`it did not start: ${screen} (${await child.exited})`);
  return { child, url, screen };
}

/**
 * Checks the README's promises about the program: a first e-mail, the dashboard, Ctrl-C, and a restart with all data.
 */
async function isWaybill(program: string, command: string[], environment: Record<string, string>): Promise<void> {
  const first = await start(program, command, environment);
  const key = /wb_\w+/.exec(first.screen)?.[0] ?? "";
  const said = await readOutput(["sh", "-c", /curl[^]*/.exec(first.screen)?.[0] ?? "exit 1"], program);
  const job = JSON.parse(said);
  expect(job).toEqual({ job_id: expect.any(String), status: "pending" });
  const ended = async ({ url }: { readonly url: string }) => {
    const answer = await fetch(`${url}/v1/jobs/${job.job_id}`, { headers: { "x-api-key": key } });
    return ((await answer.json()) as { status: string }).status === "success";
  };
  await eventually("the first e-mail is sent", () => ended(first), SENT_MS_MAX);
  const page = await (await fetch(`${first.url}/dash`)).text();
  const script = await fetch(first.url + (/src="([^"]+)"/.exec(page)?.[1] ?? ""));
  expect([script.status, script.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  first.child.kill("SIGINT");
  expect(await first.child.exited).toBe(0);
  // Beside the program's earlier files.
  expect(await readdir(program)).toContain(".waybill");

  const second = await start(program, command, environment);
  expect(second.screen).toContain("npx waybill key create demo");
  expect(await ended(second)).toBe(true);
  second.child.kill("SIGINT");
  expect(await second.child.exited).toBe(0);
}

test(
  "the package runs with what it declares, in the folder where it is called, and finds everything again",
  async () => {
    const program = await linkedInstallation();
    await Bun.write(join(program, ".env"), "DATABASE_URL=postgres://nobody@127.0.0.1:1/of-the-project\n");
    const environment = { PATH: await path({ hasBun: true }), HOME: program };
    await isWaybill(program, ["node_modules/.bin/waybill"], environment);
  },
  START_MS_MAX,
);

test.if(process.env["INSTALL_PACKAGE"] === "true")(
  "npm installs it into an empty folder of an empty home, without Bun, and it starts",
  async () => {
    const program = join(folder, "installed");
    const home = join(folder, "home");
    for (const empty of [program, home]) await mkdir(empty);
    // The rest configures this machine's access to the registry.
    const environment = { ...process.env, PATH: await path({ hasBun: false }), HOME: home } as Record<string, string>;
    await readOutput(["npm", "install", archive], program, environment);
    const told = await readOutput(["npx", "waybill", "--version"], program, environment);
    expect(told.trim()).toBe(version);
    const bun = join(program, "node_modules/waybill/.bun/node_modules/.bin/bun");
    expect(`bun@${(await readOutput([bun, "--version"], program)).trim()}`).toBe(packageManager);
    await isWaybill(program, ["node_modules/.bin/waybill"], environment);
  },
  INSTALL_MS_MAX,
);
