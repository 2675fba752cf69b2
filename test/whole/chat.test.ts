import { afterAll, beforeAll, expect, test } from "bun:test";
import { type GraphSandbox, startGraphSandbox } from "../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { eventually } from "../support/eventually.ts";
import { type LoadTenant, readAllEvents } from "../support/load.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/** Ten thousand are the full demonstration; the default shows the same in seconds. */
const MESSAGES = Number(process.env["WAYBILL_CHAT_MESSAGES"] ?? 400);
/** Each sends from a number of its own: one number alone sends eighty a second. */
const TENANTS = 10;
const SECRET = "a webhook secret of the test";

/** Messages to this number reach the provider, and its answer is lost on the way back. */
const LOST_ANSWER = "5491122337777";

let sandbox: GraphSandbox;
let front: { readonly url: string; stop(): Promise<void> };
let waybill: Waybill;
let home: Awaited<ReturnType<typeof temporaryHome>>;

beforeAll(async () => {
  sandbox = startGraphSandbox({
    webhookSecret: SECRET,
    clock: systemClock,
    random: new SeededRandom(1),
    telemetry: new QuietTelemetry(),
    shuffled: true,
    doubled: true,
    early: true,
  });
  front = startFront(sandbox.url);
  home = await temporaryHome();
  waybill = await startWaybill(home.path, { WHATSAPP_API_URL: front.url, WEBHOOK_SECRET: SECRET });
  sandbox.callBack(waybill.url);
  await waybill.operator("PUT", "/plans/load", { requests_per_minute: 1_000_000 });
}, 300_000);

afterAll(async () => {
  await waybill?.stop();
  await front?.stop();
  await sandbox?.stop();
  await home?.remove();
}, 300_000);

/** A gateway before the provider. */
function startFront(providerUrl: string) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request): Promise<Response> {
      const body = await request.text();
      const { method, headers, url } = request;
      const answer = await fetch(`${providerUrl}${new URL(url).pathname}`, { method, headers, body });
      const text = await answer.text();
      if (JSON.parse(body).to === LOST_ANSWER) return new Response(null, { status: 504 });
      return new Response(text, { status: answer.status, headers: { "content-type": "application/json" } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}

async function tenantWithNumber(index: number): Promise<LoadTenant> {
  const id = `chat-${index}`;
  const tenant = { id, name: id, plan: "load", channels: ["whatsapp"], allow_custom: ["whatsapp"] };
  expect(await waybill.operator("POST", "/tenants", tenant)).toMatchObject({ status: 201 });
  const sender = { phone_number_id: `90000${index}`, access_token: `token-${index}` };
  const stored = await waybill.operator("PUT", `/tenants/${id}/credentials/whatsapp`, sender);
  expect(stored.status).toBeWithin(200, 205);
  const { body } = await waybill.operator("POST", `/tenants/${id}/keys`);
  return { id, apiKey: body.api_key };
}

async function send(apiKey: string, to: string): Promise<string> {
  const message = { phone_number: to, template_id: "order_update", params: ["Ann"] };
  const { status, body } = await waybill.request(apiKey, "POST", "/v1/send/whatsapp", message);
  expect([status, body.status]).toEqual([202, "pending"]);
  return body.job_id;
}

async function fetchTypes(apiKey: string, jobId: string): Promise<string[]> {
  const { body } = await waybill.request(apiKey, "GET", `/v1/jobs/${jobId}/events`);
  return body.events.map((event: { event_type: string }) => event.event_type);
}

/** Waits until every job has all its events, and checks each of them. */
async function checkAll(tenant: LoadTenant, jobIds: readonly string[]): Promise<void> {
  const { byJob } = await eventually(
    `the event store has all events of ${tenant.id}`,
    async () => {
      const events = await readAllEvents(waybill, tenant);
      return jobIds.every((jobId) => (events.byJob.get(jobId) ?? []).length >= 3) ? events : null;
    },
    300_000,
  );
  expect(byJob.size).toBe(jobIds.length);
  for (const types of byJob.values()) expect(types.toSorted()).toEqual(["delivered", "read", "sent"]);
  for (const jobId of jobIds) {
    const { body } = await waybill.request(tenant.apiKey, "GET", `/v1/jobs/${jobId}`);
    expect(body).toEqual({ job_id: jobId, status: "success", result: {} });
  }
  // Duplicates that came after the first check would show by now.
  const last = jobIds.at(-1) ?? "";
  expect(await fetchTypes(tenant.apiKey, last)).toHaveLength(3);
}

test("shuffled, doubled and early callbacks leave each job with one event of each type, and a success", async () => {
  const tenants = await Promise.all(Array.from({ length: TENANTS }, (_, i) => tenantWithNumber(i)));
  const startedMs = performance.now();
  // A client per tenant, so that no request waits for another tenant's.
  const sent = await Promise.all(
    tenants.map(async (tenant, at) => {
      const jobIds: string[] = [];
      for (let i = at; i < MESSAGES; i += TENANTS) {
        jobIds.push(await send(tenant.apiKey, String(5_491_110_000_009 + i * 10)));
      }
      return { tenant, jobIds };
    }),
  );
  const acceptedMs = performance.now();
  await Promise.all(sent.map(({ tenant, jobIds }) => checkAll(tenant, jobIds)));
  if (MESSAGES <= 1_000) return;
  const [accepted, all] = [acceptedMs - startedMs, performance.now() - startedMs].map((ms) => (ms / 1000).toFixed(1));
  // oxlint-disable-next-line no-console -- the figure is what the full run is for
  console.log(`${MESSAGES} messages: accepted in ${accepted} s, every event looked at after ${all} s`);
}, 900_000);

test("the sandbox's numbers behave as documented", async () => {
  const { demoKey } = waybill;
  const sendJob = async (to: string) => ({ to, jobId: await send(demoKey, to) });
  const [refused, throttled, broken, failed] = await Promise.all(
    ["5491122330001", "5491122330002", "5491122330003", "5491122330004"].map(sendJob),
  );
  expect(await finalJob(waybill, demoKey, refused?.jobId ?? "", 30_000)).toMatchObject({
    status: "failed",
    result: { error: expect.stringContaining("131026") },
  });
  expect(await finalJob(waybill, demoKey, throttled?.jobId ?? "", 30_000)).toMatchObject({ status: "success" });
  expect(await finalJob(waybill, demoKey, broken?.jobId ?? "", 30_000)).toMatchObject({ status: "success" });
  expect(await finalJob(waybill, demoKey, failed?.jobId ?? "")).toMatchObject({ status: "success", result: {} });
  const types = await eventually("the failure is reported", async () => {
    const all = await fetchTypes(demoKey, failed?.jobId ?? "");
    return all.includes("failed") ? all : null;
  });
  expect(types.toSorted()).toEqual(["failed", "sent"]);
}, 300_000);

test("a message whose answer was lost is not sent again: its callbacks end the job", async () => {
  const { demoKey } = waybill;
  const jobId = await send(demoKey, LOST_ANSWER);
  expect(await finalJob(waybill, demoKey, jobId, 30_000)).toMatchObject({ status: "success", result: {} });
  const types = await eventually("all its events", async () => {
    const all = await fetchTypes(demoKey, jobId);
    return all.length >= 3 ? all : null;
  });
  expect(types.toSorted()).toEqual(["delivered", "read", "sent"]);
  expect(sandbox.inbox.messages(LOST_ANSWER, 10)).toHaveLength(1);
}, 300_000);
