import { expect, test } from "bun:test";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startCountingSink } from "../support/counting-sink.ts";
import { eventually } from "../support/eventually.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { SEED_MASTER_KEY, seedTenants } from "../support/seed-tenants.ts";
import { Undo } from "../support/undo.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";
import { expectWithin } from "./bounds.ts";
import { measureRedisUse, type RedisUse } from "./redis-use.ts";

const SHARDS = 16;
/** Enough that every shard has some. */
const TENANTS = 96;
const MAILS = 800;
const AT_A_TIME = 32;
/** Long enough for each half-second task of a process to run several times. */
const REST_MS = 2_000;

test("the default process makes no more calls and inserts per e-mail than it has to", async () => {
  const undo = new Undo();
  try {
    const sink = undo.add(await startCountingSink(), (one) => one.stop());
    const home = undo.add(await temporaryHome(), (one) => one.remove()).path;
    const template = { slug: "shipped", subject: "Order {{.order}}", html: "<p>Hello {{.name}}</p>", text: null };
    const wanted = Array.from({ length: TENANTS }, (_, i) => ({ id: `guard-${i}`, template }));
    const tenants = await seedTenants({ home, shards: SHARDS }, wanted);
    const settings = { SMTP_URL: sink.url, MASTER_KEY: SEED_MASTER_KEY };
    const waybill = undo.add(await startWaybill(home, settings), (one) => one.kill());
    const redis = undo.add(new Redis({ path: join(home, "redis/redis.sock") }), (one) => one.disconnect());

    let sent = 0;
    const sendSome = async () => {
      for (let i = sent++; i < MAILS; i = sent++) {
        const body = { to_address: `ann.${i}@example.test`, template_id: "shipped", data: { name: "Ann", order: i } };
        const answer = await waybill.request(tenants[i % TENANTS]?.apiKey ?? "", "POST", "/v1/send/email", body);
        expect(answer.status).toBe(202);
      }
    };
    const atRest = await measureRate(redis, () => Bun.sleep(REST_MS));
    expectWithin("at rest: script calls a second", atRest.scripts);
    expectWithin("at rest: Redis commands a second", atRest.commands);

    const begunMs = performance.now();
    const use = await measureRedisUse(redis, async () => {
      await Promise.all(Array.from({ length: AT_A_TIME }, sendSome));
      await eventually("all mails are handed over", () => sink.messages() >= MAILS, 25_000);
      await eventually("their history is whole", async () => (await recorded(waybill)) >= MAILS, 25_000);
    });
    const burstSeconds = (performance.now() - begunMs) / 1000;
    // Minus the load at rest: a slower machine has more of that per mail.
    expectWithin("whole: script calls a job", (use.scripts - burstSeconds * atRest.scripts) / MAILS);
    expectWithin("whole: Redis commands a job", (use.commands - burstSeconds * atRest.commands) / MAILS);
    expectWithin("whole: bytes appended a job", (use.appended - burstSeconds * atRest.appended) / MAILS);
    redis.disconnect();
    expect(await waybill.stop()).toBe(0);
    // A slower machine makes fewer inserts a second, not more: they wait for company for a fixed time.
    const seconds = (performance.now() - begunMs) / 1000;
    const inserts = await insertsIn(home);
    expect(inserts.rows).toBe(MAILS);
    expectWithin("whole: inserts of events a second", inserts.events / seconds);
    expectWithin("whole: inserts of jobs a second", inserts.jobs / seconds);
  } finally {
    await undo.run();
  }
}, 300_000);

/** Measures Redis's commands per second while `work` runs. */
async function measureRate(redis: Redis, work: () => Promise<unknown>): Promise<RedisUse> {
  const begunMs = performance.now();
  const use = await measureRedisUse(redis, work);
  const seconds = (performance.now() - begunMs) / 1000;
  return { scripts: use.scripts / seconds, commands: use.commands / seconds, appended: use.appended / seconds };
}

async function recorded(waybill: Waybill): Promise<number> {
  const text = await (await fetch(`${waybill.url}/metrics`)).text();
  return Number(/^waybill_event_rows_recorded_total (\d+)/m.exec(text)?.[1] ?? 0);
}

/** Counts the inserts into the event store's tables: a part's number contains those that it was merged from. */
async function insertsIn(home: string) {
  const chdb = await openClickHouse(join(home, "clickhouse"));
  try {
    const count = async (query: string) => {
      const answer = await chdb.reader.query({ query, format: "JSONEachRow" });
      const [row] = await answer.json<{ count: string }>();
      return Number(row?.count);
    };
    const countInserts = (table: string) =>
      count(`SELECT sum(last) AS count FROM (SELECT max(max_block_number) AS last FROM system.parts
        WHERE table = '${table}' GROUP BY database, partition_id)`);
    return {
      rows: await count("SELECT sum(rows) AS count FROM system.parts WHERE table = 'events' AND active"),
      events: await countInserts("events"),
      jobs: await countInserts("jobs"),
    };
  } finally {
    await chdb.close();
  }
}
