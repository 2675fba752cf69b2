import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, rename, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { SQL } from "bun";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { recently } from "../support/recent-days.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const MAIL = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };

/**
 * Returns the output of a start that is refused: one line for a person, with the command that overrides the refusal.
 */
async function readRefusal(environment: Readonly<Record<string, string>>): Promise<string> {
  const { code, errors } = await runCommand(["serve"], environment);
  const lines = errors.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  expect(lines).toEqual([expect.stringContaining("run `waybill adopt`")]);
  expect(code).toBe(2);
  return lines[0] ?? "";
}

async function send(waybill: Waybill, key: string, more: object = {}): Promise<string> {
  const { status, body } = await waybill.request(key, "POST", "/v1/send/email", { ...MAIL, ...more });
  expect(status).toBe(202);
  return body.job_id;
}

/** Sends a message, and waits until its event is in the event store. */
async function sendAndRecord(waybill: Waybill, key: string): Promise<void> {
  const jobId = await send(waybill, key);
  await finalJob(waybill, key, jobId, 30_000);
  await eventually("the event is stored", async () => {
    const { body } = await waybill.request(key, "GET", `/v1/events?${recently()}`);
    return body.events.some((event: { job_id: string }) => event.job_id === jobId);
  });
}

const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

describe.skipIf(postgresMissing() !== null)("with servers, a start", () => {
  let postgres: PostgresServer;
  let redis: RedisServer;
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let environment: Readonly<Record<string, string>>;
  let key = "";

  beforeAll(async () => {
    [postgres, redis, home] = await Promise.all([createPostgres(), startRedis(), temporaryHome()]);
    environment = { WAYBILL_HOME: home.path, REDIS_URL: redis.url, DATABASE_URL: postgres.url };
    expect((await runCommand(["migrate"], environment)).code).toBe(0);
  }, 300_000);

  afterAll(async () => {
    await redis?.stop();
    await postgres?.remove();
    await home?.remove();
  }, 300_000);

  const start = () => startWaybill(home.path, environment);

  /** The queue's data, as a backup contains it. */
  async function copyOfQueue() {
    const { client } = redis;
    const copies: [string, Buffer][] = [];
    for (const name of await client.keys("*")) {
      const dump = await client.dumpBuffer(name);
      if (dump !== null) copies.push([name, dump]);
    }
    return async () => {
      await client.flushall();
      for (const [name, dump] of copies) await client.restore(name, 0, dump);
    };
  }

  test("begins on empty stores, and refuses an emptied and an older queue until it is adopted", async () => {
    const first = await start();
    const tenant = { id: "acme", name: "Acme", permissions: ["allow_raw_html"] };
    expect((await first.operator("POST", "/tenants", tenant)).status).toBe(201);
    key = (await first.operator("POST", "/tenants/acme/keys")).body.api_key;
    await sendAndRecord(first, key);
    await send(first, key, { scheduled_at: tomorrow() });
    expect(await first.stop()).toBe(0);

    const putBack = await copyOfQueue();
    await redis.client.flushall();
    const emptied = await readRefusal(environment);
    expect(emptied).toMatch(
      /^waybill: The queue at REDIS_URL is empty, but the registry at DATABASE_URL belongs to queue/,
    );
    expect(emptied).toMatch(
      /which held at least 1 job that had not ended at 20.*: set REDIS_URL as its other processes/,
    );
    // A Redis that was named by mistake keeps no trace of it.
    expect(await redis.client.keys("*")).toEqual([]);
    const checked = await runCommand(["check"], environment);
    expect(checked.output).toContain("The queue at REDIS_URL is empty");
    expect(checked.code).toBe(2);

    await putBack();
    const second = await start();
    await sendAndRecord(second, key);
    // A kill leaves no time for a farewell.
    await second.kill();
    await putBack();
    expect(await readRefusal(environment)).toContain("The queue at REDIS_URL is an older copy than");
    const adopted = await runCommand(["adopt"], environment);
    expect(adopted.output).toMatch(/^queue: \S+ from now on \(was: \S+\)$/m);
    expect(adopted.output).toMatch(/^registry: \S+, as before$/m);
    expect(adopted.code).toBe(0);
    await (await start()).stop();
  }, 300_000);

  test("that goes on while its queue is emptied or swapped ends with a line, and adopting tells what was lost", async () => {
    const running = await start();
    await send(running, key, { scheduled_at: tomorrow() });
    await running.stop();
    const again = await start();
    await redis.client.flushall();
    expect(await again.ended()).toBe(1);
    expect(again.log()).toContain("the queue was emptied, or another one is there in its place");
    expect(await readRefusal(environment)).toContain("is empty, but the registry at DATABASE_URL");
    const adopted = await runCommand(["adopt"], environment);
    expect(adopted.output).toMatch(/^left behind in the former queue \S+: at least 2 jobs that had not ended at/m);
    const last = await start();
    await sendAndRecord(last, key);
    await last.stop();
  }, 300_000);

  test("refuses an older copy of the registry, and an empty one", async () => {
    await (await start()).stop();
    const admin = new SQL(postgres.url.replace(/waybill$/, "postgres"));
    await admin`create database older template waybill`;
    await admin`create database empty`;
    await admin.close();
    await (await start()).stop();
    const older = { ...environment, DATABASE_URL: postgres.url.replace(/waybill$/, "older") };
    expect(await readRefusal(older)).toContain(
      "The registry at DATABASE_URL is an older copy than the queue at REDIS_URL",
    );
    const empty = { ...environment, DATABASE_URL: postgres.url.replace(/waybill$/, "empty") };
    const only = { ...empty, ROLES: "dispatcher" };
    await runCommand(["migrate"], empty);
    expect(await readRefusal(only)).toMatch(
      /belongs to another registry than the registry at DATABASE_URL: .*a new one/,
    );
    await (await start()).stop();
  }, 300_000);

  test("is refused beside another one on another Redis, also if both begin at the same moment", async () => {
    const sql = new SQL(postgres.url);
    await sql`update registry_identity set queue = null, mark = 0`;
    await sql.close();
    const [one, two] = await Promise.all([startRedis(), startRedis()]);
    try {
      const at = ({ url }: RedisServer) => ({ ...environment, REDIS_URL: url, ROLES: "dispatcher" });
      const [left, right] = [await temporaryHome({ hasPostgres: false }), await temporaryHome({ hasPostgres: false })];
      const secrets = {
        MASTER_KEY: (await Bun.file(join(home.path, "master-key")).text()).trim(),
        OPERATOR_TOKEN: "operator-token-of-the-test",
      };
      const starts = await Promise.allSettled([
        startWaybill(left.path, { ...at(one), ...secrets, WAYBILL_HOME: left.path }),
        startWaybill(right.path, { ...at(two), ...secrets, WAYBILL_HOME: right.path }),
      ]);
      const [refused] = starts.filter((result) => result.status === "rejected");
      const [begun] = starts.filter((result) => result.status === "fulfilled");
      await begun?.value.kill();
      await Promise.all([left.remove(), right.remove()]);
      expect(String(refused?.reason)).toMatch(/it ended with 2 .*The queue at REDIS_URL is .*belongs to queue/s);
      expect(begun).toBeDefined();
    } finally {
      await Promise.all([one.stop(), two.stop()]);
    }
  }, 300_000);
});

describe("with its stores in the data folder, a start", () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let environment: Readonly<Record<string, string>>;
  let key = "";
  const older = () => `${home.path}-older`;

  beforeAll(async () => {
    home = await temporaryHome();
    environment = { WAYBILL_HOME: home.path };
    const first = await startWaybill(home.path);
    key = first.demoKey;
    await sendAndRecord(first, key);
    await first.stop();
    await cp(home.path, older(), { recursive: true });
    const second = await startWaybill(home.path);
    await sendAndRecord(second, key);
    await second.stop();
  }, 300_000);

  afterAll(async () => {
    await home?.remove();
    await rm(older(), { recursive: true, force: true });
  });

  /** Returns the refusal of a start while the folder of a store is away, with another one in its place if there is one. */
  async function refusedWith(store: string, inPlace: string | null): Promise<string> {
    const folder = join(home.path, store);
    await rename(folder, `${folder}.kept`);
    try {
      if (inPlace !== null) await cp(join(inPlace, store), folder, { recursive: true });
      return await readRefusal(environment);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await rename(`${folder}.kept`, folder);
    }
  }

  test.each([
    ["redis", "The private queue in WAYBILL_HOME is empty, but the private registry in WAYBILL_HOME belongs to queue"],
    [
      "postgres",
      "belongs to another registry than the private registry in WAYBILL_HOME: put WAYBILL_HOME/postgres back",
    ],
    [
      "clickhouse",
      "belongs to another event store than the private event store in WAYBILL_HOME: put WAYBILL_HOME/clickhouse back",
    ],
  ])(
    "refuses a folder %s that was removed",
    async (store, sentence) => {
      expect(await refusedWith(store, null)).toContain(sentence);
    },
    300_000,
  );

  test.each([
    ["redis", "The private queue in WAYBILL_HOME is an older copy"],
    ["postgres", "The private registry in WAYBILL_HOME is an older copy"],
    ["clickhouse", "The private event store in WAYBILL_HOME is an older copy"],
  ])(
    "refuses an older folder %s",
    async (store, sentence) => {
      expect(await refusedWith(store, older())).toContain(sentence);
    },
    300_000,
  );

  test("goes on as before once everything is back, and tells of damaged files of the event store", async () => {
    const parts = await Array.fromAsync(
      new Bun.Glob("clickhouse/store/*/*/*_*_*_*/skp_idx_job_bloom.idx").scan({ cwd: home.path }),
    );
    // A part of the events has this index.
    const [part = ""] = parts;
    await truncate(join(home.path, part, "..", "data.bin"), 0);
    const waybill = await startWaybill(home.path);
    expect(waybill.log()).toMatch(/files of the event store are damaged.*/);
    expect(waybill.log()).toMatch(/"table":"events","parts":1,"folder":".*detached"/);
    const { body } = await waybill.request(key, "GET", `/v1/events?${recently()}`);
    expect(body.events.length).toBeGreaterThan(0);
    const doctor = await runCommand(["doctor"], environment);
    expect(doctor.output).toContain("1 parts of events were damaged when it was opened");
    await waybill.stop();
  }, 300_000);

  test("goes on with an emptied queue once it is adopted", async () => {
    await rm(join(home.path, "redis"), { recursive: true });
    await readRefusal(environment);
    expect((await runCommand(["adopt"], environment)).code).toBe(0);
    const waybill = await startWaybill(home.path);
    await sendAndRecord(waybill, key);
    expect(await waybill.stop()).toBe(0);
  }, 300_000);
});
