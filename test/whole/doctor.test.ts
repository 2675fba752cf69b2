import { expect, test } from "bun:test";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { Finding } from "../../src/tasks/doctor.ts";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { useWaybill } from "../support/use-waybill.ts";
import type { Waybill } from "../support/waybill.ts";

let waybill: Waybill;

useWaybill((started) => {
  waybill = started;
});

async function doctor(): Promise<{
  readonly code: number;
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
}> {
  const { code, output } = await runCommand(["doctor", "--json"], { WAYBILL_HOME: waybill.home });
  return { code, ...JSON.parse(output) };
}

/** The speed of these machines, and of their disks, is not guaranteed. */
const needed = (findings: readonly Finding[]) =>
  findings
    .filter(({ part, todo }) => todo !== null && part !== "processes" && !part.includes("disk"))
    .map(({ part }) => part);

test("a healthy system needs nobody, and each of its parts is named", async () => {
  const healthy = async () => {
    const seen = await doctor();
    return needed(seen.findings).length === 0 ? seen : null;
  };
  const { findings } = await eventually("every shard has its owners", healthy, 45_000);
  const parts = findings.map(({ part }) => part);
  for (const part of [
    "Redis",
    "PostgreSQL",
    "ClickHouse",
    "shards",
    "queue",
    "event store",
    "data folder",
    "mail server",
  ]) {
    expect(parts).toContain(part);
  }
}, 300_000);

test("each trouble is one line that says what to do, and the exit code is 1", async () => {
  const redis = new Redis({ path: join(waybill.home, "redis", "redis.sock") });
  await redis.lpush("wb:{s03}:quarantine", "1763830000000 entry there: why\ntext");
  await redis.xadd("wb:{s04}:outbox", "1-1", "r", "", "c", "0");
  // It stays undelivered, however long the doctor's check takes.
  expect((await waybill.operator("POST", "/tenants/demo/pause", { channels: ["email"] })).status).toBe(200);
  await redis.xadd("wb:{s05}:box:demo/e", "1-0", "p", "01990000-0000-7000-8000-000000000000 e0 a@b.c\n{}");
  await redis.sadd("wb:{s05}:held", "demo/e");
  try {
    const { code, healthy, findings } = await doctor();
    expect([code, healthy]).toEqual([1, false]);
    expect(needed(findings)).toEqual(expect.arrayContaining(["quarantine", "queue"]));
    const lines = (await runCommand(["doctor"], { WAYBILL_HOME: waybill.home })).output.split("\n");
    expect(lines.filter((line) => line.startsWith("FIX   queue: the oldest job waits for"))).toHaveLength(1);
  } finally {
    redis.disconnect();
  }
}, 300_000);

test("without a server, it says so", async () => {
  await waybill.stop();
  const { code, findings } = await doctor();
  expect(code).toBe(1);
  expect(needed(findings)).toEqual(["server"]);
}, 300_000);
