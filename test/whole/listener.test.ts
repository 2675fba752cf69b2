import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { createTenants } from "../support/load.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

describe.skipIf(postgresMissing() !== null)("a process", () => {
  let redis: RedisServer;
  let postgres: PostgresServer;
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let waybill: Waybill;
  let environment: Readonly<Record<string, string>>;

  beforeAll(async () => {
    [redis, postgres, home] = await Promise.all([
      startRedis(),
      createPostgres(),
      temporaryHome({ hasPostgres: false }),
    ]);
    const urls = { REDIS_URL: redis.url, DATABASE_URL: postgres.url };
    environment = { WAYBILL_HOME: home.path, ...urls };
    expect((await runCommand(["migrate"], environment)).code).toBe(0);
    waybill = await startWaybill(home.path, { ...environment, ROLES: "dispatcher,recorder" });
  }, 300_000);

  afterAll(async () => {
    await waybill.kill();
    await redis.stop();
    await postgres.remove();
    await home.remove();
  });

  async function get(path: string, method = "GET") {
    const response = await fetch(`${waybill.url}${path}`, { method });
    return { status: response.status, body: await response.text() };
  }

  test("without the role api answers for health, readiness and metrics only", async () => {
    expect(await get("/health")).toEqual({ status: 200, body: '{"status":"ok"}' });
    expect(await get("/ready")).toEqual({ status: 200, body: '{"status":"ready"}' });
    expect((await get("/metrics")).body).toContain('waybill_part_up{part="redis"} 1');
    for (const path of ["/v1/jobs/x", "/dash", "/openapi.json", "/"]) {
      const { status, body } = await get(path);
      expect([status, typeof JSON.parse(body).error]).toEqual([404, "string"]);
    }
    expect((await get("/ready", "POST")).status).toBe(405);
  });

  test("without the role api works when its port is taken, and listens elsewhere", async () => {
    const { port } = new URL(waybill.url);
    const second = await startWaybill(home.path, { ...environment, ROLES: "dispatcher", PORT: port });
    try {
      expect(new URL(second.url).port).not.toBe(port);
      expect((await fetch(`${second.url}/ready`)).status).toBe(200);
    } finally {
      await second.kill();
    }
  });

  test("says which part is away, and since when", async () => {
    await postgres.crash();
    try {
      const body = await eventually("the registry is missed", async () => {
        const answer = await get("/ready");
        return answer.status === 503 ? JSON.parse(answer.body) : null;
      });
      expect(body).toEqual({
        error: "not ready: registry",
        status: "unavailable",
        failing: ["registry"],
        away: [{ part: "registry", since: expect.any(String) }],
      });
    } finally {
      await postgres.start();
    }
    await eventually("it is back", async () => (await get("/ready")).status === 200);
  });

  test("that is told to stop says so first, and takes requests for a moment longer", async () => {
    await waybill.kill();
    const front = await startWaybill(home.path, { ...environment, ROLES: "api", DRAIN_GRACE_MS: "5000" });
    const [tenant] = await createTenants(front, 1);
    if (tenant === undefined) throw new Error("there is no tenant");
    const ended = front.stop("SIGTERM");
    const failing = await eventually("it says so", async () => {
      const answer = await fetch(`${front.url}/ready`);
      return answer.status === 503 ? ((await answer.json()) as { failing: string[] }).failing : null;
    });
    expect(failing).toEqual(["stopping"]);
    const body = { to_address: "ann@example.com", subject: "Hi", html: "<p>Hi</p>" };
    expect((await front.request(tenant.apiKey, "POST", "/v1/send/email", body)).status).toBe(202);
    expect(await ended).toBe(0);
    await expect(fetch(`${front.url}/health`)).rejects.toThrow();
  });

  test("that is interrupted waits for nobody", async () => {
    const front = await startWaybill(home.path, { ...environment, ROLES: "api", DRAIN_GRACE_MS: "5000" });
    const askedAtMs = performance.now();
    expect(await front.stop("SIGINT")).toBe(0);
    expect(performance.now() - askedAtMs).toBeLessThan(5_000);
  });
});
