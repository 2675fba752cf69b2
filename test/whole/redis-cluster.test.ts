import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { createTenants, type LoadTenant, readAllEvents } from "../support/load.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { type ClusterNode, type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/**
 * `CLUSTER_KILLS=10` is the long run: that many masters are killed, one after the other, and a table of the losses is
 * printed. `CLUSTER_CUT_MS=500` also cuts the victim's replica off for that long before each kill, as a network does
 * that fails together with a machine. `CLUSTER_ACKED=1` sets REDIS_REPLICAS_ACKED, `CLUSTER_MIN_REPLICAS=1` Redis' own
 * min-replicas-to-write: docs/redis-cluster.md has the figures of each.
 */
const KILLS = Number(process.env["CLUSTER_KILLS"] ?? 1);
const CUT_MS = Number(process.env["CLUSTER_CUT_MS"] ?? 0);
const ACKED = process.env["CLUSTER_ACKED"] ?? "0";
const MIN_REPLICAS = process.env["CLUSTER_MIN_REPLICAS"] ?? "0";
const SENDERS = 8;
/** Jobs that are accepted before a kill, and after it. */
const JOBS = 300;

const SHARED = {
  MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
  OPERATOR_TOKEN: "operator-token-of-the-test",
  SHARDS: "12",
};

interface Accepted {
  readonly tenant: LoadTenant;
  readonly jobId: string;
}

describe.skipIf(postgresMissing() !== null)("whole processes on a Redis Cluster", () => {
  let cluster: RedisCluster;
  let postgres: PostgresServer;
  let sink: SmtpSink;
  let front: Waybill;
  let tenants: readonly LoadTenant[];
  const homes: Awaited<ReturnType<typeof temporaryHome>>[] = [];
  const processes: Waybill[] = [];
  let urls: Readonly<Record<string, string>>;

  beforeAll(async () => {
    const settings = ["--min-replicas-to-write", MIN_REPLICAS];
    [cluster, postgres, sink] = await Promise.all([startRedisCluster(3, settings), createPostgres(), startSmtpSink()]);
    urls = {
      ...SHARED,
      REDIS_URL: cluster.url,
      DATABASE_URL: postgres.url,
      SMTP_URL: sink.url,
      REDIS_REPLICAS_ACKED: ACKED,
    };
    const home = await newHome();
    expect((await runCommand(["migrate"], { ...SHARED, DATABASE_URL: postgres.url, WAYBILL_HOME: home })).code).toBe(0);
    front = await start("api,recorder");
    await start("dispatcher");
    tenants = await createTenants(front, 24);
  }, 300_000);

  afterAll(async () => {
    await Promise.all(processes.map((waybill) => waybill.kill()));
    await Promise.all([...homes.map((home) => home.remove()), sink.stop(), cluster.stop(), postgres.remove()]);
  }, 300_000);

  async function newHome(): Promise<string> {
    const home = await temporaryHome({ hasPostgres: false });
    homes.push(home);
    return home.path;
  }

  async function start(roles: string): Promise<Waybill> {
    const waybill = await startWaybill(await newHome(), { ...urls, ROLES: roles });
    processes.push(waybill);
    return waybill;
  }

  test("check accepts it", async () => {
    const { code, output } = await runCommand(["check"], { ...urls, WAYBILL_HOME: await newHome() });
    expect(output).toContain("Redis: answers (cluster of 3 masters, Redis 7");
    expect(output).toContain("together: the queue belongs to these stores");
    expect(code).toBe(0);
  }, 90_000);

  test(
    `no message answered with 202 is sent twice or lost while ${KILLS} of its masters are killed`,
    async () => {
      const all: Accepted[] = [];
      const rows: string[] = [];
      for (let kill = 0; kill < KILLS; kill += 1) {
        const victim = (await cluster.masters())[kill % 3];
        if (victim === undefined) throw new Error("the cluster has no such master");
        const round = await load(victim);
        all.push(...round.accepted);
        rows.push(`${round.accepted.length} accepted, ${round.refused} refused, away for ${round.awayMs} ms`);
      }
      const lost = await missingAfter(all);
      const twice = [...sink.received.values()].filter((times) => times > 1).length;
      for (const row of rows) process.stderr.write(`${row}\n`);
      process.stderr.write(`${KILLS} kills, ${all.length} accepted, ${lost.length} lost, ${twice} sent twice\n`);
      expect(lost.length).toBe(0);
    },
    60_000 + KILLS * 60_000,
  );

  /** Sends until enough jobs are accepted on either side of the kill. */
  async function load(victim: ClusterNode) {
    const accepted: Accepted[] = [];
    let refused = 0;
    let asked = 0;
    let enough = Number.POSITIVE_INFINITY;
    const send = async (): Promise<void> => {
      while (accepted.length < enough) {
        const tenant = tenants[asked++ % tenants.length];
        if (tenant === undefined) return;
        const body = { to_address: `u${asked}@example.com`, subject: "Hello", html: "<p>Hello</p>" };
        const answer = await front.request(tenant.apiKey, "POST", "/v1/send/email", body);
        if (answer.status === 202) accepted.push({ tenant, jobId: answer.body.job_id });
        else refused += 1;
      }
    };
    const senders = Array.from({ length: SENDERS }, send);
    await eventually("enough is accepted before", () => accepted.length >= JOBS, 60_000);
    if (CUT_MS > 0) await cutReplica(victim);
    await victim.kill();
    const killedAtMs = performance.now();
    const name = `redis 127.0.0.1:${victim.port}`;
    const failing = await eventually("readiness names the master", async () => {
      const answer = await fetch(`${front.url}/ready`);
      const { failing } = (await answer.json()) as { failing?: string[] };
      return failing?.includes(name) ? failing : null;
    });
    expect(failing).toEqual([name]);
    await eventually("another one has taken over", async () => (await fetch(`${front.url}/ready`)).ok, 30_000);
    const awayMs = Math.round(performance.now() - killedAtMs);
    // Restarts it as a supervisor does. Until then the new master has no replica.
    await victim.restart();
    await cluster.isWhole();
    enough = accepted.length + JOBS;
    await Promise.all(senders);
    return { accepted, refused, awayMs };
  }

  /** The replica receives no more from its master, which works on: later writes have one copy. */
  async function cutReplica(victim: ClusterNode): Promise<void> {
    const replicas = await cluster.findReplicas(victim);
    for (const replica of replicas) replica.pause();
    await victim.client.call("CLIENT", "KILL", "TYPE", "replica");
    await Bun.sleep(CUT_MS);
    for (const replica of replicas) setTimeout(() => replica.resume(), 20);
  }

  /** The jobs that have neither been sent nor are to be found, once all others are done. */
  async function missingAfter(all: readonly Accepted[]): Promise<readonly Accepted[]> {
    let before = -1;
    return await eventually(
      "what is accepted is sent and recorded, or gone",
      async () => {
        const reading = tenants.map(async (tenant) => [tenant.id, await readAllEvents(front, tenant)] as const);
        // While a node comes back, and on a busy machine, some reads are not answered in time.
        const read = await Promise.all(reading).catch(() => null);
        if (read === null) return null;
        const sent = new Map(read);
        const missing = all.filter(({ tenant, jobId }) => !sent.get(tenant.id)?.byJob.get(jobId)?.includes("sent"));
        if (missing.length === 0) return missing;
        const isSettled = missing.length === before;
        before = missing.length;
        const known = await Promise.all(
          missing.map(({ tenant, jobId }) => front.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}`)),
        );
        await Bun.sleep(500);
        return isSettled && known.every(({ status }) => status === 404) ? missing : null;
      },
      300_000,
    );
  }
});
