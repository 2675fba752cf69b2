import { afterEach, describe, expect, test } from "bun:test";
import { FaultWorld, MAIL } from "../faults/fault-world.ts";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { createPostgres, postgresMissing } from "../support/postgres.ts";
import { SEED_MASTER_KEY, seedTenants } from "../support/seed-tenants.ts";
import { finalJob, type Waybill } from "../support/waybill.ts";

const SHARDS = 4;
/** A process is considered dead after fifteen seconds, and its work undone after twenty more. */
const NOTICED_WITHIN_MS = 60_000;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

const missing = postgresMissing();

/** The state as an operator's programs read it. */
async function readRoles(waybill: Waybill) {
  const ready = await fetch(`${waybill.url}/ready`);
  const state = (await ready.json()) as { readonly away?: readonly { readonly part: string }[] };
  const metrics = await (await fetch(`${waybill.url}/metrics`)).text();
  const { body } = await waybill.operator("GET", "/overview");
  const unowned = /^waybill_shards_unowned\{role="dispatcher"\} (\d+)$/m.exec(metrics)?.[1];
  const alarms: readonly { readonly runbook: string }[] = body.alarms;
  return {
    status: ready.status,
    away: (state.away ?? []).map(({ part }) => part),
    unowned: Number(unowned),
    alarms: alarms.map(({ runbook }) => runbook),
  };
}

describe.skipIf(missing !== null)(`a role that nobody plays${missing ? ` (${missing})` : ""}`, () => {
  test("the only dispatcher is killed: every sign says so, and all is well once another one starts", async () => {
    const postgres = world.undo.add(await createPostgres(), (server) => server.remove());
    const redis = await world.redis();
    const relay = await world.relay();
    const [tenant] = await seedTenants({ databaseUrl: postgres.url, shards: SHARDS }, [{ id: "acme" }]);
    if (tenant === undefined) throw new Error("a tenant was seeded");
    const urls = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, SMTP_URL: relay.url() };
    const environment = { ...urls, SHARDS: String(SHARDS) };
    const home = await world.home();
    const front = await world.start(home, { ...environment, ROLES: "api,recorder" });
    const worker = async () => world.start(await world.home(), { ...environment, ROLES: "dispatcher" });
    const first = await worker();
    const calm = { status: 200, away: [], unowned: 0, alarms: [] };
    const isCalm = async () => Bun.deepEquals(await readRoles(front), calm);
    const send = async () => (await front.request(tenant.apiKey, "POST", "/v1/send/email", MAIL)).body.job_id;
    await finalJob(front, tenant.apiKey, await send());
    await eventually("all is well", isCalm, 30_000);

    await first.kill();
    const jobId = await send();
    const isNoticed = async () => {
      const { status, away, unowned, alarms } = await readRoles(front);
      const alarm = "docs/runbook.md#waybillshardunowned";
      return status === 200 && away.includes("dispatcher") && unowned === SHARDS && alarms.includes(alarm);
    };
    await eventually("readiness, metrics and overview say that nobody delivers", isNoticed, NOTICED_WITHIN_MS);
    const { body } = await front.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}/explain`);
    expect(body).toMatchObject({ waits_for: "turn", detail: expect.stringContaining("none is running") });
    const told = await runCommand(["doctor"], { ...environment, MASTER_KEY: SEED_MASTER_KEY, WAYBILL_HOME: home });
    expect(told.output).toContain("FIX   shards: no running process delivers any shard");

    await worker();
    expect(await finalJob(front, tenant.apiKey, jobId, 60_000)).toMatchObject({ status: "success" });
    await eventually("all is well again", isCalm, 30_000);
  }, 240_000);
});
