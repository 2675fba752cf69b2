import { afterEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listChildren } from "../../src/processes/process-plan.ts";
import { makePrivate, requireOwnFolder } from "../../src/storage/private-folder.ts";
import { runCommand } from "../support/command.ts";
import { Undo } from "../support/undo.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const undo = new Undo();

afterEach(() => undo.run());

async function newHome(): Promise<string> {
  return undo.add(await temporaryHome(), (home) => home.remove()).path;
}

async function start(home: string, environment: Record<string, string> = {}): Promise<Waybill> {
  return undo.add(await startWaybill(home, environment), (server) => server.kill());
}

/** The folder, and everything in it. */
function allIn(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return [folder, ...names.map((name) => join(folder, name))].filter((path) => {
    const info = lstatSync(path, { throwIfNoEntry: false });
    return info !== undefined && !info.isSymbolicLink();
  });
}

/** Files that users other than the owner may access. */
function openToOthers(folder: string): readonly string[] {
  return allIn(folder).filter((path) => ((lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
}

function openUp(folder: string): void {
  for (const path of allIn(folder)) chmodSync(path, lstatSync(path).isDirectory() ? 0o755 : 0o666);
}

async function sendSome(waybill: Waybill, apiKey: string): Promise<void> {
  // The large one has a file of its own.
  for (const size of [10, 400_000]) {
    const body = { to_address: "ann@example.com", subject: "Hi", html: `<p>${"word ".repeat(size / 5)}</p>` };
    const sent = await waybill.request(apiKey, "POST", "/v1/send/email", body);
    expect(sent.status).toBe(202);
    await finalJob(waybill, apiKey, sent.body.job_id);
  }
}

test("a start makes an open data folder and all its files private, and later files are private from the beginning", async () => {
  const home = await newHome();
  chmodSync(home, 0o755);
  const first = await start(home, { CLICKHOUSE_HTTP_PORT: "0" });
  await sendSome(first, first.demoKey);
  expect(openToOthers(home)).toEqual([]);
  expect(await first.stop()).toBe(0);

  openUp(home);
  expect(openToOthers(home).length).toBeGreaterThan(500);
  const second = await start(home);
  expect(openToOthers(home)).toEqual([]);
  await sendSome(second, first.demoKey);
  expect(openToOthers(home)).toEqual([]);
  expect(second.log()).toContain("other users of this machine had rights to the data folder");
  expect(await second.stop()).toBe(0);
  expect(openToOthers(home)).toEqual([]);
}, 300_000);

test("a folder that is closed around open files is walked as well", async () => {
  const home = await newHome();
  chmodSync(join(home, "postgres"), 0o755);
  writeFileSync(join(home, "postgres", "base", "rows"), "rows", { mode: 0o666 });
  await runCommand(["check"], { WAYBILL_HOME: home, MASTER_KEY: Buffer.alloc(32, 7).toString("base64") });
  expect(openToOthers(home)).toEqual([]);
});

test("the folders that child processes write their exports to are closed like the rest", async () => {
  const home = await newHome();
  const folders = [...listChildren({ api: 2, dispatcher: 1 }).keys()].map((name) => join(home, `export-${name}`));
  for (const folder of folders) mkdirSync(folder, { mode: 0o755 });
  chmodSync(home, 0o755);
  expect(makePrivate(home)).toBe(true);
  expect(folders).toHaveLength(3);
  expect(openToOthers(home)).toEqual([]);
});

test.each<[string, (home: string) => void, string]>([
  ["is shared, as /tmp is", (home) => chmodSync(home, 0o1777), "has mode 1777 and is shared with other users"],
  [
    "holds what is somebody else's",
    (home) => {
      mkdirSync(join(home, "www"), { mode: 0o755 });
      chmodSync(home, 0o755);
    },
    'has mode 0755 and holds the folder "www", which is not Waybill\'s',
  ],
])("a data folder that %s is refused in one line, and left as it is", async (_, make, line) => {
  const home = await newHome();
  make(home);
  const before = lstatSync(home).mode;
  const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME: home });
  expect(errors.trim().split("\n")).toEqual([expect.stringContaining(`${home} ${line}`)]);
  expect(code).toBe(2);
  expect(lstatSync(home).mode).toBe(before);
  if (line.includes("www")) expect(lstatSync(join(home, "www")).mode & 0o777).toBe(0o755);
});

test.skipIf(process.getuid?.() !== 0)(
  "a file that another user can read and we cannot close is refused in one line",
  async () => {
    const home = await newHome();
    chmodSync(home, 0o755);
    const script = join(import.meta.dir, "../../src/storage/private-folder.ts");
    const code = `import { makePrivate, requireOwnFolder } from ${JSON.stringify(script)};
    try { makePrivate(${JSON.stringify(home)}); } catch (error) { console.log(error.name, error.problems.join("|")); }`;
    const nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    const child = Bun.spawn([...nobody, process.execPath, "-e", code], { stdout: "pipe", stderr: "pipe" });
    const [said, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect({ said, errors }).toEqual({
      said: expect.stringMatching(
        /^ConfigurationError WAYBILL_HOME should be .* has mode 0755 and belongs to another user/,
      ),
      errors: "",
    });
    expect(lstatSync(home).mode & 0o777).toBe(0o755);
  },
);

/** A user other than the one that runs this. */
const STRANGER = 54_321;

describe.skipIf(process.geteuid?.() !== 0)("as root, a data folder", () => {
  const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");

  test("of another user is refused in one line before its secrets are read, unless the setting allows it", async () => {
    const home = await newHome();
    writeFileSync(join(home, "operator-token"), "a-token-that-the-other-user-knows");
    chownSync(home, STRANGER, STRANGER);
    const before = readdirSync(home);
    for (const command of ["serve", "check"]) {
      const { code, errors } = await runCommand([command], { WAYBILL_HOME: home });
      expect(errors).toStartWith(
        `waybill: ${home} belongs to the user with uid ${STRANGER}, and Waybill runs as root: run it as that user`,
      );
      expect(errors.trimEnd()).not.toContain("\n");
      expect(code).toBe(2);
    }
    expect(readdirSync(home)).toEqual(before);
    const environment = { WAYBILL_HOME: home, MASTER_KEY, WAYBILL_HOME_OWNER: "any" };
    expect((await runCommand(["check"], environment)).errors).not.toContain("belongs to");
  }, 60_000);

  test("with a secret of another user is refused, and with what the file system itself has made there is not", async () => {
    const home = await newHome();
    mkdirSync(join(home, "lost+found"), { mode: 0o700 });
    chownSync(join(home, "lost+found"), STRANGER, STRANGER);
    requireOwnFolder(home);
    chownSync(join(home, "operator-token"), STRANGER, STRANGER);
    expect(() => requireOwnFolder(home)).toThrow(
      `${join(home, "operator-token")} belongs to the user with uid ${STRANGER}`,
    );
  });

  test("behind a link is judged as the folder, and a link of another user is refused", async () => {
    const home = await newHome();
    const link = `${home}-link`;
    symlinkSync(home, link);
    undo.add(link, (one) => Bun.file(one).delete());
    requireOwnFolder(link);
    lchownSync(link, STRANGER, STRANGER);
    expect(() => requireOwnFolder(link)).toThrow(`${link} belongs to the user with uid ${STRANGER}`);
    lchownSync(link, 0, 0);
    chownSync(home, STRANGER, STRANGER);
    expect(() => requireOwnFolder(link)).toThrow(`${home} belongs to the user with uid ${STRANGER}`);
  });

  test("that is not there yet is made, also in a folder that all users share", () => {
    requireOwnFolder(join(tmpdir(), "waybill-is-not-there"));
  });
});

test("a data folder that is a file is refused in one line", async () => {
  const home = join(await newHome(), "master-key");
  const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME: home });
  expect(errors).toBe(
    `waybill: WAYBILL_HOME is "${home}", which is no folder; it should be one, or not be there yet\n`,
  );
  expect(code).toBe(2);
});
