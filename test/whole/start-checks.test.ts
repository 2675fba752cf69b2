import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { SQL } from "bun";
import { runCommand } from "../support/command.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");
const OTHER_KEY = Buffer.alloc(32, 8).toString("base64");
const META = "wb:{meta}";

/** Returns the output of a process that does not start: lines for a person, no stack. */
function refusals(errors: string): string[] {
  return errors.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
}

describe.skipIf(postgresMissing() !== null)("a start and a check", () => {
  let postgres: PostgresServer;
  const redises: RedisServer[] = [];
  const homes: Awaited<ReturnType<typeof temporaryHome>>[] = [];
  const running: Waybill[] = [];

  beforeAll(async () => {
    postgres = await createPostgres();
    const home = await newHome();
    const migrated = await runCommand(["migrate"], { WAYBILL_HOME: home, DATABASE_URL: postgres.url, MASTER_KEY });
    expect(migrated.code).toBe(0);
  }, 300_000);

  afterEach(async () => {
    for (const waybill of running.splice(0)) await waybill.kill();
    for (const redis of redises.splice(0)) await redis.stop();
    // Each test has a queue of its own.
    await forgetQueue();
  });

  afterAll(async () => {
    await Promise.all(homes.map((home) => home.remove()));
    await postgres.remove();
  }, 300_000);

  /** The registry as before its first start. */
  async function forgetQueue(): Promise<void> {
    const sql = new SQL(postgres.url);
    await sql`update registry_identity set queue = null, mark = 0`;
    await sql.close();
  }

  async function newHome({ hasPostgres = false } = {}): Promise<string> {
    const home = await temporaryHome({ hasPostgres });
    homes.push(home);
    return home.path;
  }

  async function newRedis(...settings: readonly string[]): Promise<RedisServer> {
    const redis = await startRedis(settings);
    redises.push(redis);
    return redis;
  }

  /** A process that delivers without a private store. */
  async function dispatcher(redis: RedisServer, changes: Readonly<Record<string, string>> = {}) {
    const { WAYBILL_HOME = await newHome() } = changes;
    const urls = { REDIS_URL: redis.url, DATABASE_URL: postgres.url };
    return {
      WAYBILL_HOME,
      ...urls,
      MASTER_KEY,
      OPERATOR_TOKEN: "operator-token-of-the-test",
      ROLES: "dispatcher",
      ...changes,
    };
  }

  async function start(environment: Readonly<Record<string, string>>): Promise<void> {
    running.push(await startWaybill(environment["WAYBILL_HOME"] ?? "", environment));
  }

  /** The same refusal at a start and from `check`, with exit code 2 and one line. */
  async function expectRefusal(environment: Readonly<Record<string, string>>, line: string): Promise<void> {
    const started = await runCommand(["serve"], environment);
    expect(refusals(started.errors)).toEqual([expect.stringContaining(line)]);
    expect(started.code).toBe(2);
    const checked = await runCommand(["check"], environment);
    expect(checked.output).toContain(line);
    expect(checked.code).toBe(2);
  }

  test.each([
    [["--appendonly", "no"], 'set "appendonly yes"'],
    [["--maxmemory-policy", "allkeys-lru"], 'set "maxmemory-policy noeviction"'],
    [["--maxmemory-policy", "volatile-ttl", "--rename-command", "CONFIG", ""], 'set "maxmemory-policy noeviction"'],
    [["--cluster-enabled", "yes"], "REDIS_URL should name several of its nodes"],
  ])("refuse a Redis with %j", async (settings, line) => {
    await expectRefusal(await dispatcher(await newRedis(...settings)), line);
  });

  test("refuse several servers that are not a cluster", async () => {
    const redis = await newRedis();
    const environment = await dispatcher(redis, { REDIS_URL: `${redis.url},${redis.url}` });
    await expectRefusal(environment, "they are no Redis Cluster");
  });

  test.each([
    [["--appendfsync", "everysec"], "appendfsync everysec"],
    [["--aof-load-truncated", "yes"], "aof-load-truncated yes"],
    [["--rename-command", "CONFIG", ""], "does not say when it syncs"],
  ])("warn about a Redis with %j, and work with it", async (settings, warning) => {
    const environment = await dispatcher(await newRedis(...settings));
    await start(environment);
    const { code, output } = await runCommand(["check"], environment);
    expect(output).toMatch(new RegExp(`^Redis: warning: .*${warning}`, "m"));
    expect(code).toBe(0);
  });

  test("begin work on a full Redis, which would not drain otherwise, but not on a new one", async () => {
    const redis = await newRedis();
    const environment = await dispatcher(redis);
    await start(environment);
    for (const waybill of running.splice(0)) await waybill.kill();
    await redis.client.config("SET", "maxmemory", "1");
    await start(environment);
    for (const waybill of running.splice(0)) await waybill.kill();
    await forgetQueue();
    const empty = await newRedis("--maxmemory", "1");
    const { code, errors } = await runCommand(["serve"], await dispatcher(empty));
    expect(refusals(errors)).toEqual([expect.stringContaining("the queue refuses writes: OOM")]);
    expect(code).toBe(1);
  }, 300_000);

  test("refuse a master key that does not belong to the data, and follow its rotation", async () => {
    const redis = await newRedis();
    await start(await dispatcher(redis));
    await expectRefusal(await dispatcher(redis, { MASTER_KEY: OTHER_KEY }), "which is not in MASTER_KEY");
    const before = await redis.client.hget(META, "master_key");
    // The new key encrypts from now on; a process with only the old one could not open its data.
    await start(await dispatcher(redis, { MASTER_KEY: `${OTHER_KEY},${MASTER_KEY}` }));
    expect(await redis.client.hget(META, "master_key")).not.toBe(before);
    await expectRefusal(await dispatcher(redis), "which is not in MASTER_KEY");
    await start(await dispatcher(redis, { MASTER_KEY: `${MASTER_KEY},${OTHER_KEY}` }));
    expect(await redis.client.hget(META, "master_key")).toBe(before);
  }, 300_000);

  test("refuse another number of shards than that of the data", async () => {
    const redis = await newRedis();
    await start(await dispatcher(redis));
    await expectRefusal(await dispatcher(redis, { SHARDS: "8" }), "SHARDS is 8, but the data was created with 16");
  });

  test("refuse a registry whose schema is outdated", async () => {
    const redis = await newRedis();
    const sql = new SQL(postgres.url);
    await sql`create table kept as select * from registry_migrations`;
    await sql`delete from registry_migrations where hash = (select max(hash) from registry_migrations)`;
    try {
      await expectRefusal(await dispatcher(redis), "run `waybill migrate`");
    } finally {
      await sql`delete from registry_migrations`;
      await sql`insert into registry_migrations select * from kept`;
      await sql`drop table kept`;
      await sql.close();
    }
  });

  test("refuse a private registry, and a private event store, beside a shared queue", async () => {
    const redis = await newRedis();
    const recorder = await dispatcher(redis, { ROLES: "recorder" });
    await start(recorder);
    const WAYBILL_HOME = await newHome({ hasPostgres: true });
    const { DATABASE_URL: _, ...withoutRegistry } = await dispatcher(redis, { WAYBILL_HOME });
    const alone = await runCommand(["serve"], withoutRegistry);
    expect(refusals(alone.errors)).toEqual([
      expect.stringMatching(/belongs to another registry than the private registry in WAYBILL_HOME: set DATABASE_URL/),
    ]);
    expect(alone.code).toBe(2);
    const other = await dispatcher(redis, { ROLES: "api,recorder" });
    const second = await runCommand(["serve"], other);
    expect(refusals(second.errors)).toEqual([
      expect.stringMatching(/belongs to another event store than the private event store .*: .*set CLICKHOUSE_URL/),
    ]);
    expect(second.code).toBe(2);

    // An intended move: the queue belongs to that event store from now on, and the former one is refused.
    for (const waybill of running.splice(0)) await waybill.kill();
    const adopted = await runCommand(["adopt"], other);
    expect(adopted.output).toMatch(/^registry: \S+, as before$/m);
    expect(adopted.output).toMatch(/^event store: \S+ from now on \(was: \S+\)$/m);
    expect(adopted.code).toBe(0);
    await start(other);
    expect((await runCommand(["serve"], recorder)).code).toBe(2);
  }, 300_000);
});

test("a master key missing beside its data is not generated anew", async () => {
  const home = await temporaryHome();
  try {
    const { WAYBILL_HOME } = { WAYBILL_HOME: home.path };
    const first = await startWaybill(home.path);
    await first.kill();
    const key = join(home.path, "master-key");
    const held = await Bun.file(key).text();
    await rm(key);
    const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME });
    expect(refusals(errors)).toEqual([expect.stringContaining("restore the file, or set MASTER_KEY to what it held")]);
    expect(code).toBe(2);
    expect(await Bun.file(key).exists()).toBe(false);
    const wrong = await runCommand(["serve"], { WAYBILL_HOME, MASTER_KEY: OTHER_KEY });
    expect(wrong.errors).toContain("which is not in MASTER_KEY");
    expect(wrong.code).toBe(2);
    await (await startWaybill(home.path, { MASTER_KEY: held.trim() })).kill();
  } finally {
    await home.remove();
  }
}, 300_000);
