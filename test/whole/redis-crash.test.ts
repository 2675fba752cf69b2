import { afterAll, beforeAll, expect, test } from "bun:test";
import { createTenants, finishedEvents, type LoadTenant } from "../support/load.ts";
import { recordProof } from "../support/proof.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let tenants: readonly LoadTenant[];

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path);
  tenants = await createTenants(waybill, 10);
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
}, 90_000);

/** The redis-server that this server started. */
async function redisPid(): Promise<number> {
  const children = await Bun.file(`/proc/${waybill.pid}/task/${waybill.pid}/children`).text();
  for (const pid of children.trim().split(" ")) {
    if ((await Bun.file(`/proc/${pid}/comm`).text()).trim() === "redis-server") return Number(pid);
  }
  throw new Error(`no redis-server among ${children}`);
}

test("kill -9 of redis-server under load loses no accepted job, and the server recovers by itself", async () => {
  const accepted = new Map<LoadTenant, string[]>(tenants.map((tenant) => [tenant, []]));
  let count = 0;
  let asked = 0;
  const sendUntilEnough = async (): Promise<void> => {
    while (count < 2000) {
      const tenant = tenants[asked++ % tenants.length];
      if (tenant === undefined) return;
      const body = { to_address: `u${asked}@example.com`, subject: "Hello", html: "<p>Hello</p>" };
      const answer = await waybill.request(tenant.apiKey, "POST", "/v1/send/email", body);
      // A message that cannot be queued while Redis is away is answered with an error, never with a 202.
      if (answer.status !== 202) continue;
      accepted.get(tenant)?.push(answer.body.job_id);
      count += 1;
    }
  };
  const senders = Array.from({ length: 16 }, sendUntilEnough);
  for (const enough of [500, 1200]) {
    while (count < enough) await Bun.sleep(2);
    process.kill(await redisPid(), "SIGKILL");
  }
  await Promise.all(senders);
  const sentMs = performance.now();
  for (const [tenant, jobIds] of accepted) {
    const { byJob } = await finishedEvents(waybill, tenant, jobIds, 60_000);
    for (const jobId of jobIds) expect(byJob.get(jobId)?.filter((type) => type === "sent")).toEqual(["sent"]);
  }
  const recoveryMs = Math.round(performance.now() - sentMs);
  recordProof({ fault: "kill -9 of redis-server, twice under load", accepted: count, lost: 0, recoveryMs });
  expect((await fetch(`${waybill.url}/ready`)).status).toBe(200);
}, 300_000);
