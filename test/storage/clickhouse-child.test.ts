import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { isAlive } from "../support/is-alive.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-clickhouse-child-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const CREATE = "CREATE TABLE IF NOT EXISTS default.t (n UInt64) ENGINE = MergeTree ORDER BY n";
/** Fields of proc(5)'s stat, behind the command: state, parent, group, …, priority, niceness. */
const readStat = async (pid: number) => (await readFile(`/proc/${pid}/stat`, "utf8")).replace(/^.*\) /, "").split(" ");

test("a server that was killed is started again at the same address, with all that it confirmed", async () => {
  const server = await openClickHouse(join(folder, "killed"));
  await server.writer.command({ query: CREATE });
  await server.writer.command({ query: "INSERT INTO default.t SELECT number FROM numbers(1000)" });
  const { pid } = server;
  process.kill(pid, "SIGKILL");
  const count = async () => {
    const result = await server.reader.query({ query: "SELECT count() FROM default.t", format: "TabSeparated" });
    return Number(await result.text());
  };
  await eventually("it answers again", async () => (await count().catch(() => null)) === 1000, 30_000);
  expect(server.pid).not.toBe(pid);
  await server.close();
  expect(isAlive(server.pid)).toBe(false);
}, 90_000);

test("its priority is lower than ours, and a terminal's interrupt does not reach it", async () => {
  const server = await openClickHouse(join(folder, "nice"));
  const [, , group, ...rest] = await readStat(server.pid);
  expect(Number(group)).toBe(server.pid);
  expect(Number(rest[13])).toBeGreaterThan(Number((await readStat(process.pid))[16]));
  await server.close();
}, 90_000);

test("it ends when its parent is killed, and the next one opens the folder", async () => {
  const place = join(folder, "orphaned");
  const program = `
    import { openClickHouse } from "./test/support/private-clickhouse.ts";
    const server = await openClickHouse(${JSON.stringify(place)});
    await server.writer.command({ query: ${JSON.stringify(CREATE)} });
    console.log(server.pid);
    setInterval(() => {}, 1000);`;
  const parent = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  const first = await parent.stdout.getReader().read();
  const pid = Number(Buffer.from(first.value ?? []).toString());
  expect(isAlive(pid)).toBe(true);
  parent.kill("SIGKILL");
  await parent.exited;
  const server = await openClickHouse(place);
  await eventually("the former one is gone", () => !isAlive(pid));
  const result = await server.reader.query({ query: "EXISTS default.t", format: "TabSeparated" });
  expect(await result.text()).toBe("1\n");
  await server.close();
}, 90_000);

test("what its users may do is written anew before each start", async () => {
  const server = await openClickHouse(join(folder, "rewritten"));
  await Bun.write(join(folder, "rewritten", "users.xml"), "<clickhouse></clickhouse>");
  process.kill(server.pid, "SIGKILL");
  const ask = () =>
    server.reader.query({ query: "SELECT currentUser()", format: "TabSeparated" }).then((said) => said.text());
  await eventually("it answers again", async () => (await ask().catch(() => "")) === "waybill\n", 30_000);
  await server.close();
}, 90_000);
