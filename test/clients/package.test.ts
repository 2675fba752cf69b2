import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseBlocks } from "../docs/page-blocks.ts";
import { fetchOperations } from "../security/support/operations.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const SLOW_MS = 240_000;
const ROOT = join(import.meta.dir, "../..");
const CLIENT = join(ROOT, "clients/typescript");

let home: Awaited<ReturnType<typeof temporaryHome>>;
let server: Waybill;
/** The path of a program that has the client installed. */
let program: string;

beforeAll(async () => {
  program = await mkdtemp(join(tmpdir(), "waybill-client-"));
  const installed = join(program, "node_modules/waybill-client");
  await mkdir(installed, { recursive: true });
  await cp(join(CLIENT, "package.json"), join(installed, "package.json"));
  await compile(["-p", CLIENT, "--outDir", join(installed, "dist")]);
  await compile(["-p", join(CLIENT, "tsconfig.cjs.json"), "--outDir", join(installed, "dist/cjs")]);
  await writeFile(join(installed, "dist/cjs/package.json"), `{ "type": "commonjs" }`);
  home = await temporaryHome();
  server = await startWaybill(home.path);
}, SLOW_MS);

afterAll(async () => {
  await server?.stop();
  await home?.remove();
  await rm(program, { recursive: true, force: true });
}, SLOW_MS);

async function compile(args: readonly string[]): Promise<void> {
  expect(await run(process.execPath, "--bun", join(ROOT, "node_modules/.bin/tsc"), ...args)).toEqual(["", 0]);
}

async function run(...command: readonly string[]): Promise<[string, number]> {
  const child = Bun.spawn([...command], { cwd: program, stdout: "pipe", stderr: "inherit" });
  return [await new Response(child.stdout).text(), await child.exited];
}

test("every call of tenants and operators has a method", async () => {
  const sources = await Promise.all(["waybill.ts", "operator.ts"].map((file) => readFile(join(CLIENT, file), "utf8")));
  const called = sources.flatMap((text) =>
    Array.from(text.matchAll(/calls\.(?:call|list)\(\s*"(\w+)"/g), ([, name]) => name),
  );
  const operations = (await fetchOperations(server.url)).filter(({ security }) =>
    ["apiKey", "operator"].includes(security),
  );
  const missing = operations.map(({ id }) => id).filter((id) => !called.includes(id));
  expect([operations.length > 50, missing]).toEqual([true, []]);
});

/** The programs of the documentation, which `test/docs/pages.test.ts` runs, as files of this program. */
async function writePrograms(): Promise<readonly string[]> {
  const texts = await Promise.all(
    ["sending.md", "events.md"].map((page) => readFile(join(ROOT, "docs", page), "utf8")),
  );
  const blocks = texts.flatMap(parseBlocks).filter(({ language }) => language === "ts");
  const files = blocks.map(({ text }, at) => ({ name: `page-${at}.ts`, text }));
  const all = [
    ...files,
    { name: "node.d.ts", text: "declare const process: { env: Record<string, string | undefined> };" },
  ];
  await Promise.all(all.map(({ name, text }) => writeFile(join(program, name), text)));
  expect(files.length).toBeGreaterThan(4);
  return all.map(({ name }) => name);
}

test(
  "the examples of README and pages compile strictly against the package; the README's does on Node.js what it says",
  async () => {
    const readme = await readFile(join(CLIENT, "README.md"), "utf8");
    const example = /```ts\n([^]*?)```/.exec(readme)?.[1] ?? "";
    expect(example).toContain("http://127.0.0.1:3000");
    expect(example).toContain("wb_…");
    const mine = example.replace("http://127.0.0.1:3000", server.url).replace("wb_…", server.demoKey);
    await writeFile(join(program, "package.json"), `{ "type": "module" }`);
    await writeFile(join(program, "example.ts"), mine);
    await compile([
      "example.ts",
      ...(await writePrograms()),
      "--strict",
      "--skipLibCheck",
      "--module",
      "nodenext",
      "--target",
      "es2022",
    ]);
    const [out, exitCode] = await run(Bun.which("node") ?? process.execPath, "example.js");
    const lines = out.trim().split("\n");
    expect(lines[0]).toBe("success");
    expect(lines.at(-1)).toMatch(/^400 bad_request invalid_member phone_number .+/);
    expect(exitCode).toBe(0);
  },
  SLOW_MS,
);

test("a program in CommonJS requires it, as tools that know no modules do", async () => {
  const source = `const { Waybill, InvalidSecret } = require("waybill-client"); console.log(typeof Waybill, InvalidSecret.name)`;
  await writeFile(join(program, "common.cjs"), source);
  expect(await run(Bun.which("node") ?? process.execPath, "common.cjs")).toEqual(["function InvalidSecret\n", 0]);
});
