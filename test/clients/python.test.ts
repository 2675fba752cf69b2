import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const SLOW_MS = 120_000;
const CLIENT = join(import.meta.dir, "../../clients/python");
const python = Bun.which("python3");

let home: Awaited<ReturnType<typeof temporaryHome>>;
let server: Waybill;

beforeAll(async () => {
  home = await temporaryHome();
  server = await startWaybill(home.path);
}, SLOW_MS);

afterAll(async () => {
  await server?.stop();
  await home?.remove();
}, SLOW_MS);

async function run(...args: readonly string[]): Promise<readonly [string, number]> {
  const env = { ...process.env, PYTHONPATH: CLIENT, WAYBILL_URL: server.url, WAYBILL_KEY: server.demoKey };
  const child = Bun.spawn([python ?? "python3", "-B", "-W", "error", ...args], { env, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return [out + err, await child.exited];
}

test.skipIf(python === null)(
  "the Python client sends, waits, pages, repeats safely, says what is wrong and checks webhooks",
  async () => {
    const [output, exitCode] = await run(join(import.meta.dir, "test_python_client.py"));
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/Ran 2\d tests/)]);
  },
  SLOW_MS,
);

test.skipIf(python === null)(
  "the example of its README does what it says",
  async () => {
    const readme = await readFile(join(CLIENT, "README.md"), "utf8");
    const example = /```python\n([^]*?)```/.exec(readme)?.[1] ?? "";
    const mine = example.replace("http://127.0.0.1:3000", server.url).replace("wb_…", server.demoKey);
    const [output, exitCode] = await run("-c", mine);
    expect([exitCode, output]).toEqual([
      0,
      expect.stringMatching(/^success\n[^]*400 bad_request invalid_member phone_number .+\n$/),
    ]);
  },
  SLOW_MS,
);
