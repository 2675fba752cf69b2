import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Balancer } from "../support/balancer.ts";
import { startEngine } from "../support/clickhouse-event-store.ts";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { type FormerBuild, findCommit, hasDrainGrace, prepareBuild, readQueueFormat } from "../support/former-build.ts";
import { freePort } from "../support/free-port.ts";
import { createTenants, finishedEvents, type LoadTenant } from "../support/load.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/** The build that is replaced: a commit, by default the one before this. */
const FROM = findCommit(process.env["UPGRADE_FROM"] ?? "HEAD~1");
const PROCESSES = 3;
const SENDERS = 3;
const SEND_PAUSE_MS = 20;
/**
 * The balancer polls each process every 150 ms, and waits for an answer for over 1,500 ms on a machine that is busy
 * with other tests.
 */
const DRAIN_GRACE_MS = "4000";
/** Jobs that are accepted between two replacements. */
const JOBS = 150;

const missing = postgresMissing() ?? (FROM === null ? "there is no former commit to upgrade from" : null);

const SHARED = {
  MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
  OPERATOR_TOKEN: "operator-token-of-the-test",
  SHARDS: "12",
};

if (missing !== null) test.skip(`an upgrade from the former build: ${missing}`, () => undefined);

describe.skipIf(missing !== null)("an upgrade from the former build", () => {
  let former: FormerBuild;
  let redis: RedisServer;
  let postgres: PostgresServer;
  let clickhouse: Awaited<ReturnType<typeof startEngine>>;
  let sink: SmtpSink;
  let urls: Readonly<Record<string, string>>;
  let isSameFormat: boolean;
  const homes: Awaited<ReturnType<typeof temporaryHome>>[] = [];
  const processes: Waybill[] = [];

  beforeAll(async () => {
    [former, redis, postgres, clickhouse, sink] = await Promise.all([
      prepareBuild(FROM ?? ""),
      startRedis(),
      createPostgres(),
      startEngine(),
      startSmtpSink(),
    ]);
    isSameFormat = (await readQueueFormat(former.root)) === (await readQueueFormat());
    const { url: CLICKHOUSE_URL, user: CLICKHOUSE_USER, password: CLICKHOUSE_PASSWORD } = clickhouse.server.address;
    const events = { CLICKHOUSE_URL, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD };
    const stores = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, ...events };
    urls = { ...SHARED, ...stores, SMTP_URL: sink.url, DRAIN_GRACE_MS };
    await migrate(former.root);
  }, 300_000);

  afterAll(async () => {
    for (const waybill of processes) await waybill.kill();
    for (const home of homes) await home.remove();
    await sink.stop();
    await redis.stop();
    await clickhouse.stop();
    await postgres.remove();
    await former.remove();
  }, 300_000);

  async function newHome(): Promise<string> {
    const home = await temporaryHome({ hasPostgres: false });
    homes.push(home);
    return home.path;
  }

  async function migrate(root?: string): Promise<void> {
    const { code, errors } = await runCommand(["migrate"], { ...urls, WAYBILL_HOME: await newHome() }, root);
    if (code !== 0) throw new Error(errors);
  }

  async function start(port: number, root?: string): Promise<Waybill> {
    const waybill = await startWaybill(
      await newHome(),
      { ...urls, PORT: String(port) },
      root === undefined ? {} : { root },
    );
    processes.push(waybill);
    return waybill;
  }

  test("answers every request and sends every job once while three processes are replaced", async () => {
    if (!isSameFormat) return expectRefusals();
    const ports = await Promise.all(Array.from({ length: PROCESSES }, freePort));
    const running = await Promise.all(ports.map((port) => start(port, former.root)));
    const [first] = running;
    if (first === undefined) throw new Error("nothing was started");
    const tenants = await createTenants(first, 12);
    const balancer = new Balancer(running.map(({ url }) => url));
    const load = startLoad(balancer, tenants);
    try {
      await load.enough(JOBS);
      // Beside the running former build: a schema may only grow.
      await migrate();
      for (const [i, old] of running.entries()) {
        const isTold = await hasDrainGrace(former.root);
        const backend = balancer.backend(old.url);
        if (!isTold) {
          backend.isOut = true;
          await eventually("nothing is in flight there", () => backend.inFlight === 0);
        }
        // A process that has not stopped after ten seconds ends itself, with code 1.
        expect(await old.stop("SIGTERM")).toBe(0);
        const next = await start(ports[i] ?? 0);
        expect(next.url).toBe(old.url);
        backend.isOut = false;
        await eventually("the new one is ready", () => balancer.takes(next.url));
        await load.enough(JOBS);
      }
    } finally {
      await load.stop();
      await balancer.stop();
    }
    const [front] = processes.slice(PROCESSES);
    if (front === undefined) throw new Error("nothing was replaced");
    let count = 0;
    for (const [tenant, jobIds] of load.accepted) {
      const { byJob } = await finishedEvents(front, tenant, jobIds, 60_000);
      for (const jobId of jobIds) expect(byJob.get(jobId)).toEqual(["sent"]);
      count += jobIds.length;
    }
    process.stderr.write(`${count} accepted, ${load.failures.length} failed, ${sink.received.size} sent\n`);
    expect(load.failures).toEqual([]);
    expect(sink.received.size).toBe(count);
    expect([...sink.received.values()].filter((times) => times > 1)).toEqual([]);
  }, 300_000);

  /** Neither build works on the other's queue: each says so in one line, and leaves it unchanged. */
  async function expectRefusals(): Promise<void> {
    const old = await start(await freePort(), former.root);
    const [tenant] = await createTenants(old, 1);
    if (tenant === undefined) throw new Error("there is no tenant");
    await old.request(tenant.apiKey, "POST", "/v1/send/email", HTML);
    await old.stop();
    const environment = async () => ({ ...urls, WAYBILL_HOME: await newHome() });
    const newer = await runCommand(["serve"], await environment());
    expect([newer.code, findPlainLines(newer.errors)]).toEqual([2, [expect.stringMatching(/queue|schema/i)]]);
    await migrate();
    // A build from before formats checks for none.
    if ((await readQueueFormat(former.root)) > 1) {
      const older = await runCommand(["serve"], await environment(), former.root);
      expect([older.code, findPlainLines(older.errors)]).toEqual([2, [expect.stringMatching(/queue/i)]]);
    }
    const next = await start(await freePort());
    expect((await next.request(tenant.apiKey, "POST", "/v1/send/email", HTML)).status).toBe(202);
    await eventually("what either of them accepted is sent", () => sink.received.size === 2);
  }
});

const HTML = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };

function findPlainLines(errors: string): string[] {
  return errors.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
}

/** Clients that send one job after the other through a balancer. */
function startLoad(balancer: Balancer, tenants: readonly LoadTenant[]) {
  const accepted = new Map<LoadTenant, string[]>(tenants.map((tenant) => [tenant, []]));
  const failures: string[] = [];
  let count = 0;
  let asked = 0;
  let isStopped = false;
  const send = async (): Promise<void> => {
    while (!isStopped) {
      const tenant = tenants[asked++ % tenants.length];
      if (tenant === undefined) return;
      const headers = { "x-api-key": tenant.apiKey, "content-type": "application/json" };
      try {
        const response = await balancer.send("/v1/send/email", {
          method: "POST",
          headers,
          body: JSON.stringify(HTML),
        });
        const text = await response.text();
        if (response.status !== 202) throw new Error(`${response.status} ${text}`);
        accepted.get(tenant)?.push((JSON.parse(text) as { job_id: string }).job_id);
        count += 1;
        // Enough to be noticed: the test is about the replacement, not about throughput.
        await Bun.sleep(SEND_PAUSE_MS);
      } catch (error) {
        failures.push(String(error));
      }
    }
  };
  const senders = Array.from({ length: SENDERS }, send);
  return {
    accepted,
    failures,
    async enough(more: number) {
      const target = count + more;
      await eventually("enough is accepted", () => count >= target || failures.length > 50, 60_000);
    },
    async stop() {
      isStopped = true;
      await Promise.all(senders);
    },
  };
}
