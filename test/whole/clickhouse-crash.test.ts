import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { createTenants, finishedEvents, type LoadTenant } from "../support/load.ts";
import { recordProof } from "../support/proof.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let tenants: readonly LoadTenant[];

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path);
  tenants = await createTenants(waybill, 4);
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
}, 90_000);

/** The ClickHouse server that this start created; null: there is none at this moment. */
async function clickhousePid(): Promise<number | null> {
  const children = await Bun.file(`/proc/${waybill.pid}/task/${waybill.pid}/children`).text();
  for (const pid of children.trim().split(" ")) {
    const command = await Bun.file(`/proc/${pid}/cmdline`)
      .text()
      .catch(() => "");
    if (command.includes("clickhouse-server.ts")) return Number(pid);
  }
  return null;
}

test("kill -9 of ClickHouse under load ends nothing, and every event is stored once", async () => {
  const accepted = new Map<LoadTenant, string[]>(tenants.map((tenant) => [tenant, []]));
  let count = 0;
  const send = async (tenant: LoadTenant, jobIds: string[]) => {
    for (let n = 0; n < 150; n += 1) {
      const body = { to_address: `u${n}@example.com`, subject: "Hello", html: "<p>Hello</p>" };
      const answer = await waybill.request(tenant.apiKey, "POST", "/v1/send/email", body);
      expect(answer.status).toBe(202);
      jobIds.push(answer.body.job_id);
      count += 1;
    }
  };
  const senders = Array.from(accepted, ([tenant, jobIds]) => send(tenant, jobIds));
  for (const enough of [100, 250, 400]) {
    while (count < enough) await Bun.sleep(2);
    const pid = await clickhousePid();
    if (pid !== null) process.kill(pid, "SIGKILL");
  }
  await Promise.all(senders);
  const sentMs = performance.now();
  const isReady = async () => (await fetch(`${waybill.url}/ready`)).status === 200;
  await eventually("ClickHouse answers again", isReady, 30_000);
  for (const [tenant, jobIds] of accepted) {
    const { byJob } = await finishedEvents(waybill, tenant, jobIds, 90_000);
    for (const jobId of jobIds) expect(byJob.get(jobId)?.filter((type) => type === "sent")).toEqual(["sent"]);
  }
  const recoveryMs = Math.round(performance.now() - sentMs);
  recordProof({
    fault: "kill -9 of the embedded ClickHouse, three times under load",
    accepted: count,
    lost: 0,
    recoveryMs,
  });
  expect(await isReady()).toBe(true);
}, 300_000);
