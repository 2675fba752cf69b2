import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError } from "../../src/domain/errors.ts";
import { openFilesDoubt } from "../../src/runtime/open-files.ts";
import { basicEnvironment } from "../support/basic-environment.ts";

const ROOT = join(import.meta.dir, "../..");
const ALL = { hasStores: true, delivers: true, serves: true };

/** Bun under a limit of open files. */
async function underLimit(limit: number, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const command = `ulimit -n ${limit} && exec "$0" "$@"`;
  const child = Bun.spawn(["sh", "-c", command, process.execPath, ...args], {
    cwd: ROOT,
    env: { ...basicEnvironment(), ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, output, errors };
}

test("a limit that a start needs is no doubt, one that it may come to need is, with the numbers, and one below cannot work", () => {
  expect(openFilesDoubt(ALL, 65_536)).toBeNull();
  expect(openFilesDoubt(ALL, null)).toBeNull();
  expect(openFilesDoubt(ALL, 1_024)).toMatch(
    /may have 1024 files and sockets open, and can need 3650 \(.*350 for its stores/,
  );
  expect(openFilesDoubt({ hasStores: false, delivers: false, serves: true }, 2_000)).toBeNull();
  expect(() => openFilesDoubt(ALL, 200)).toThrow(ConfigurationError);
});

test("a start that could not open its files says so before it makes any", async () => {
  const home = await mkdtemp(join(tmpdir(), "waybill-files-"));
  const { code, errors } = await underLimit(100, ["src/main.ts"], { WAYBILL_HOME: home, PROCESSES: "1", PORT: "0" });
  expect(errors).toMatch(
    /^waybill: this process may have 100 files and sockets open, and needs \d+ to start: [^\n]*\n$/,
  );
  expect(code).toBe(2);
  expect((await readdir(home)).filter((name) => ["postgres", "redis", "clickhouse", "lock"].includes(name))).toEqual(
    [],
  );
  await rm(home, { recursive: true });
}, 60_000);

test("a process without a file descriptor left is not ready, which is an outage, and is again once it has some", async () => {
  const script = `
    import { closeSync, openSync } from "node:fs";
    import { isOutage } from "./src/domain/errors.ts";
    import { openFilesProbe } from "./src/runtime/open-files.ts";
    await openFilesProbe.check();
    const held = [];
    try { for (;;) held.push(openSync("/dev/null")); } catch {}
    const error = await openFilesProbe.check().catch((reason) => reason);
    for (const one of held) closeSync(one);
    await openFilesProbe.check();
    console.log(error.code, isOutage(error));
  `;
  expect((await underLimit(64, ["-e", script])).output).toBe("EMFILE true\n");
});
