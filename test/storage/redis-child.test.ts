import { afterEach, expect, test } from "bun:test";
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Redis } from "ioredis";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { systemClock as clock } from "../../src/runtime/system-clock.ts";
import { UnopenedStoreError } from "../../src/storage/opening-store.ts";
import { type RedisChild, startRedisChild } from "../../src/storage/redis/redis-child.ts";
import { eventually } from "../support/eventually.ts";
import { isAlive } from "../support/is-alive.ts";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function freshFolder(depth = ""): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), "waybill-redis-"));
  cleanups.push(() => rm(parent, { recursive: true, force: true }));
  return join(parent, depth, "redis");
}

class Log implements Telemetry {
  readonly messages: string[] = [];
  readonly counts = new Map<string, number>();
  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
  gauge(): void {}
  time(): void {}
  log(level: string, message: string): void {
    if (level !== "debug") this.messages.push(message);
  }
}

async function start(folder: string, log = new Log(), onExit?: (reason: string) => void): Promise<RedisChild> {
  const child = await startRedisChild({ folder, clock, telemetry: log, ...(onExit && { onExit }) });
  cleanups.push(() => child.stop());
  return child;
}

function connect(address: RedisChild["address"]): Redis {
  const redis = address.kind === "socket" ? new Redis({ path: address.path }) : new Redis(address.url);
  redis.on("error", () => undefined);
  cleanups.push(() => redis.disconnect());
  return redis;
}

/** A process that starts a child on the folder, writes `key` and stays until it is killed. */
async function startParent(folder: string) {
  const script = join(import.meta.dir, "run-redis-child.ts");
  const parent = Bun.spawn([process.execPath, script, folder], { stdout: "pipe", stderr: "inherit" });
  cleanups.push(() => parent.kill("SIGKILL"));
  const { value } = await parent.stdout.getReader().read();
  const redisPid = Number(new TextDecoder().decode(value));
  expect(redisPid).toBeGreaterThan(0);
  cleanups.push(() => isAlive(redisPid) && process.kill(redisPid, "SIGKILL"));
  return { parent, redisPid };
}

/** A redis-server that works in the folder without a supervisor. */
async function orphanIn(folder: string) {
  const orphan = Bun.spawn(["redis-server", join(folder, "redis.conf")], { cwd: folder, stdout: "ignore" });
  cleanups.push(() => orphan.kill("SIGKILL"));
  const redis = connect({ kind: "socket", path: join(folder, "redis.sock") });
  await redis.ping();
  return { orphan, redis };
}

const increment = (folder: string) => join(folder, "appendonlydir", "appendonly.aof.1.incr.aof");

test("acknowledged writes survive kill -9 of the child, which is started again at the same address", async () => {
  const folder = await freshFolder();
  const log = new Log();
  const child = await start(folder, log);
  const redis = connect(child.address);
  for (let n = 0; n < 100; n++) await redis.rpush("list", n);
  const pid = child.pid;
  process.kill(pid, "SIGKILL");
  await eventually(
    "the child is another process",
    () => child.pid !== pid && log.counts.get("redis_child_exits") === 1,
  );
  expect(await redis.llen("list")).toBe(100);
  expect(log.messages).toContain("redis-server ended and is started again");
});

test("the child ends when its parent is killed, and its acknowledged writes are there at the next start", async () => {
  const folder = await freshFolder();
  const { parent, redisPid } = await startParent(folder);
  expect(isAlive(redisPid)).toBe(true);
  parent.kill("SIGKILL");
  await parent.exited;
  await eventually("the child is gone", () => !isAlive(redisPid));
  const child = await start(folder);
  expect(await connect(child.address).get("key")).toBe("acknowledged");
});

test("a child that an earlier run left behind, even a stopped one, is ended before the next one starts", async () => {
  const folder = await freshFolder();
  await (await start(folder)).stop();
  for (const signal of ["SIGCONT", "SIGSTOP"] as const) {
    const { orphan, redis } = await orphanIn(folder);
    await redis.set("key", signal);
    orphan.kill(signal);
    const log = new Log();
    const child = await start(folder, log);
    await orphan.exited;
    expect(orphan.signalCode).toBe("SIGKILL");
    expect(log.messages).toEqual(["ended a redis-server that an earlier run left behind"]);
    expect(await connect(child.address).get("key")).toBe(signal);
    await child.stop();
  }
});

test("a socket that a killed server left does not stop a start", async () => {
  const folder = await freshFolder();
  await (await start(folder)).stop();
  const { orphan } = await orphanIn(folder);
  orphan.kill("SIGKILL");
  await orphan.exited;
  expect((await readdir(folder)).includes("redis.sock")).toBe(true);
  const child = await start(folder);
  expect(await connect(child.address).ping()).toBe("PONG");
});

test("a server that answers on the child's socket is ended in order, wherever it works", async () => {
  const folder = await freshFolder();
  await (await start(folder)).stop();
  const socket = join(folder, "redis.sock");
  const elsewhere = await mkdtemp(join(tmpdir(), "waybill-redis-"));
  cleanups.push(() => rm(elsewhere, { recursive: true, force: true }));
  const stranger = Bun.spawn(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", elsewhere], {
    stdout: "ignore",
  });
  cleanups.push(() => stranger.kill("SIGKILL"));
  await connect({ kind: "socket", path: socket }).ping();
  const child = await start(folder);
  expect(await stranger.exited).toBe(0);
  expect(await connect(child.address).ping()).toBe("PONG");
});

const CUT = "cut off what a crash left of the last write to the queue's file";

test("a tail of zero bytes is cut off, and everything before it is there", async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  await connect(first.address).set("key", "acknowledged");
  await first.stop();
  const { size } = await stat(increment(folder));
  await appendFile(increment(folder), Buffer.alloc(300_000));
  const log = new Log();
  const child = await start(folder, log);
  expect(await connect(child.address).get("key")).toBe("acknowledged");
  expect(log.messages).toEqual([CUT]);
  expect((await readFile(increment(folder))).subarray(0, size).at(-1)).toBe(0x0a);
});

test("a command cut short by a power loss is dropped, and everything before it is there", async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  const redis = connect(first.address);
  await redis.set("key", "acknowledged");
  const { size: whole } = await stat(increment(folder));
  await redis.set("other", "x".repeat(1000));
  await first.stop();
  const { size } = await stat(increment(folder));
  const torn = (await readFile(increment(folder))).subarray(whole, size - 500);
  await truncate(increment(folder), size - 500);
  await appendFile(increment(folder), Buffer.alloc(4096));
  const child = await start(folder);
  expect(await connect(child.address).mget("key", "other")).toEqual(["acknowledged", null]);
  expect(await readFile(join(folder, "torn-tail.aof"))).toEqual(torn);
});

/** Where a write of several commands is torn: the end of the file. */
const TEARS: readonly (readonly [name: string, end: (transaction: string) => number])[] = [
  ["within the command that opens it", () => "*1\r\n$5\r\nMU".length],
  ["behind the command that opens it", () => "*1\r\n$5\r\nMULTI\r\n".length],
  ["within its first command", (text) => text.indexOf("hash") + 1],
  ["behind its first command", (text) => text.indexOf("*", text.indexOf("hash"))],
  ["within a later command", (text) => text.indexOf("torn", text.indexOf("RPUSH")) + 100_000],
  ["behind its last command", (text) => text.lastIndexOf("*")],
  ["within the command that ends it", (text) => text.lastIndexOf("\r")],
];

for (const [name, endOf] of TEARS) {
  test(`a transaction torn ${name} leaves nothing, also after what follows it and another crash`, async () => {
    const folder = await freshFolder();
    const first = await start(folder);
    const redis = connect(first.address);
    await redis.set("key", "acknowledged");
    const { size: whole } = await stat(increment(folder));
    const write =
      "redis.call('HSET','hash','a',ARGV[1]) redis.call('RPUSH','list',ARGV[1]) redis.call('SET','k',ARGV[1])";
    await redis.eval(write, 0, "torn".repeat(100_000));
    await first.stop();
    const file = await readFile(increment(folder), "latin1");
    expect(file.slice(whole)).toStartWith("*1\r\n$5\r\nMULTI\r\n");
    await truncate(increment(folder), whole + endOf(file.slice(whole)));

    const second = await start(folder);
    const again = connect(second.address);
    expect(await again.exists("hash", "list", "k")).toBe(0);
    await again.rpush("list", "whole");
    await again.set("later", "acknowledged");
    process.kill(second.pid, "SIGKILL");
    await second.stop();

    const third = connect((await start(folder)).address);
    expect(await third.mget("key", "later", "k")).toEqual(["acknowledged", "acknowledged", null]);
    expect(await third.lrange("list", 0, -1)).toEqual(["whole"]);
    expect(await third.exists("hash")).toBe(0);
  });
}

test("a file in which a former release left half a transaction is read as it was, and cut at its end alone", async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  await connect(first.address).set("key", "acknowledged");
  await first.stop();
  const command = (...words: string[]) =>
    `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
  const half = command("MULTI") + command("SET", "half", "torn");
  const whole = command("MULTI") + command("SET", "later", "acknowledged") + command("EXEC");
  await appendFile(increment(folder), half + whole + half);
  const child = await start(folder);
  expect(await connect(child.address).mget("key", "later")).toEqual(["acknowledged", "acknowledged"]);
  expect(await readFile(increment(folder), "latin1")).toEndWith(half + whole);
});

test("copies of the queue that a crash left are removed: a rewrite's at once, what was cut off after a week", async () => {
  const folder = await freshFolder();
  await (await start(folder)).stop();
  const files = join(folder, "appendonlydir");
  const [rewrites, cutOff] = [
    [join(folder, "temp-rewriteaof-123.aof"), join(folder, "temp-rewriteaof-bg-123.aof"), join(folder, "temp-9.rdb")],
    [join(folder, "torn-tail.aof"), join(files, "appendonly.aof.1.incr.aof.1763830000000.backup")],
  ];
  for (const file of [...rewrites, ...cutOff]) await writeFile(file, "x");
  await (await start(folder)).stop();
  const left = async () =>
    [...(await readdir(folder)), ...(await readdir(files))].filter((name) => /temp|torn|backup/.test(name));
  expect(await left()).toEqual(cutOff.map((file) => basename(file)));
  const week = new Date(Date.now() - 8 * 86_400_000);
  for (const file of cutOff) await utimes(file, week, week);
  await (await start(folder)).stop();
  expect(await left()).toEqual([]);
});

test("a file that is damaged in the middle stops the start with its name, and is left as it is", async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  const redis = connect(first.address);
  for (let n = 0; n < 100; n++) await redis.set(`key${n}`, "acknowledged");
  await first.stop();
  const damaged = await readFile(increment(folder));
  damaged[damaged.indexOf("*3", damaged.length / 2)] = 0x21;
  await writeFile(increment(folder), damaged);
  const error = await startRedisChild({ folder, clock, telemetry: new Log() }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UnopenedStoreError);
  expect(String(error)).toContain(folder);
  expect(String(error)).toContain("appendonly.aof.1.incr.aof");
  expect(await readFile(increment(folder))).toEqual(damaged);
});

test("a child that cannot be kept running is reported once, with its last lines", async () => {
  const folder = await freshFolder();
  const reasons: string[] = [];
  const child = await start(folder, new Log(), (reason) => reasons.push(reason));
  await writeFile(join(folder, "redis.conf"), "no-such-directive yes\n");
  process.kill(child.pid, "SIGKILL");
  await eventually("it is given up", () => reasons.length > 0, 20_000);
  await child.stop();
  expect(reasons).toHaveLength(1);
  expect(reasons[0]).toContain("no-such-directive");
});

test("a folder whose path is too long for a socket gets a loopback port with a password", async () => {
  const folder = await freshFolder("d".repeat(120));
  const child = await start(folder);
  if (child.address.kind !== "url") throw new Error("expected a URL");
  const url = new URL(child.address.url);
  expect(url.hostname).toBe("127.0.0.1");
  const stranger = connect({ kind: "url", url: `redis://127.0.0.1:${url.port}` });
  expect(await stranger.get("key").catch(String)).toContain("NOAUTH");
  expect(await connect(child.address).set("key", "value")).toBe("OK");
});

test("no client can empty the queue or inspect its memory, and only their owner can read its files", async () => {
  const folder = await freshFolder();
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
  const child = await start(folder);
  const redis = connect(child.address);
  for (const command of ["flushall", "flushdb", "debug"]) {
    expect(await redis.call(command).catch(String)).toContain("unknown command");
  }
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(join(folder, "redis.conf"))).mode & 0o777).toBe(0o600);
  expect(await redis.config("GET", "appendfsync")).toEqual(["appendfsync", "always"]);
});

test("Ctrl-C on our terminal does not reach the child, which must outlive the drain", async () => {
  const child = await start(await freshFolder());
  // proc(5): pid (comm) state ppid pgrp. A terminal signals the foreground process group.
  const [, group] = /\) \S+ \d+ (\d+) /.exec(await readFile(`/proc/${child.pid}/stat`, "utf8")) ?? [];
  expect(Number(group)).toBe(child.pid);
});

test("a folder with odd characters in its name works", async () => {
  const folder = await freshFolder('a "b" \\c ü');
  const child = await start(folder);
  expect(await connect(child.address).set("key", "value")).toBe("OK");
});

test("a stop during a restart starts nothing", async () => {
  const folder = await freshFolder();
  const log = new Log();
  const child = await start(folder, log);
  process.kill(child.pid, "SIGKILL");
  await eventually("the exit was noticed", () => log.counts.get("redis_child_exits") === 1);
  await child.stop();
  await child.stop();
  expect(isAlive(child.pid)).toBe(false);
});
