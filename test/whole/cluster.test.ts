import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { createTenants, finishedEvents } from "../support/load.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { recordProof } from "../support/proof.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const SHARED = {
  MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
  OPERATOR_TOKEN: "operator-token-of-the-test",
  SHARDS: "8",
};
/** Deliveries in flight, and outcomes on their way to the queue, of one process. */
const IN_FLIGHT_MAX = 48 + 256;
/** The lease of a dead process lasts ten seconds. */
const TAKEOVER_MS_MAX = 15_000;
const HTML = { to_address: "ann@example.com", subject: "Hi", html: "<p>Hi</p>" };

describe.skipIf(postgresMissing() !== null)("several processes on remote servers", () => {
  let redis: RedisServer;
  let postgres: PostgresServer;
  let sink: SmtpSink;
  const homes: Awaited<ReturnType<typeof temporaryHome>>[] = [];
  const processes: Waybill[] = [];

  beforeAll(async () => {
    [redis, postgres, sink] = await Promise.all([startRedis(), createPostgres(), startSmtpSink()]);
  }, 300_000);

  afterAll(async () => {
    for (const waybill of processes) await waybill.kill();
    for (const home of homes) await home.remove();
    await sink.stop();
    await redis.stop();
    await postgres.remove();
  }, 90_000);

  async function start(roles: string): Promise<Waybill> {
    const home = await temporaryHome({ hasPostgres: false });
    homes.push(home);
    const urls = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, SMTP_URL: sink.url };
    const waybill = await startWaybill(home.path, { ...SHARED, ...urls, ROLES: roles });
    processes.push(waybill);
    return waybill;
  }

  async function owners(): Promise<(string | null)[]> {
    const shards = Array.from({ length: 8 }, (_, shard) => shard);
    return await Promise.all(shards.map((shard) => redis.client.hget(`wb:{s0${shard}}:lease:dispatcher`, "owner")));
  }

  test("share the work, and replace a killed one within fifteen seconds", async () => {
    const home = await temporaryHome({ hasPostgres: false });
    homes.push(home);
    const migrated = Bun.spawnSync([process.execPath, "src/main.ts", "migrate"], {
      env: { ...process.env, ...SHARED, WAYBILL_HOME: home.path, DATABASE_URL: postgres.url },
      stderr: "inherit",
    });
    expect(migrated.exitCode).toBe(0);

    const front = await start("api,recorder");
    const workers = [await start("dispatcher"), await start("dispatcher")];
    const tenants = await createTenants(front, 16);
    while (new Set(await owners()).size < 2 || (await owners()).includes(null)) await Bun.sleep(50);

    const accepted = new Map<string, string[]>();
    const sendRound = async (count: number) => {
      for (const tenant of tenants) {
        const answers = await Promise.all(
          Array.from({ length: count }, () => front.request(tenant.apiKey, "POST", "/v1/send/email", HTML)),
        );
        const ids = answers.map((answer) => answer.body.job_id as string);
        accepted.set(tenant.id, [...(accepted.get(tenant.id) ?? []), ...ids]);
      }
    };
    await sendRound(20);
    const [first] = workers;
    await first?.kill();
    const killedAtMs = performance.now();
    const hasTakenOver = async () => new Set(await owners()).size === 1;
    const takenOver = eventually("the other one has all shards", hasTakenOver, TAKEOVER_MS_MAX).then(
      () => performance.now() - killedAtMs,
    );
    await sendRound(20);
    const recoveryMs = Math.round(await takenOver);
    for (const tenant of tenants) {
      const { byJob } = await finishedEvents(front, tenant, accepted.get(tenant.id) ?? [], 30_000);
      for (const types of byJob.values()) expect(types).toEqual(["sent"]);
    }
    const count = [...accepted.values()].flat().length;
    let taken = 0;
    for (const times of sink.received.values()) taken += times;
    recordProof({
      fault: "kill -9 of one of two dispatchers",
      accepted: count,
      lost: 0,
      sentTwice: taken - sink.received.size,
      recoveryMs,
      // Its deliveries in flight.
      sentTwiceAllowed: IN_FLIGHT_MAX,
    });
    expect(sink.received.size).toBe(16 * 40);
  }, 300_000);
});
