import { startGraphSandbox } from "../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import { eventTimeMs } from "../../src/domain/event.ts";
import { jobTimeMs } from "../../src/domain/ids.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { eventually } from "../../test/support/eventually.ts";
import { type LoadTenant, readAllEvents } from "../../test/support/load.ts";
import { startWaybill, temporaryHome, type Waybill } from "../../test/support/waybill.ts";
import { noTelemetry } from "./bench-world.ts";
import { drive, type LoadResult } from "./driver.ts";
import { type LatencySummary, summarise } from "./latency.ts";

/** Each has its own number, because one number sends at most eighty messages per second. */
const TENANTS = 40;
const SECRET = "a webhook secret of the benchmark";
const SETTLED_MS = 180_000;
const BODY = JSON.stringify({ phone_number: "5491122334455", template_id: "order_update", params: ["Ann", "4711"] });

export interface ChatLoad {
  /** Duration of the run at full speed. */
  readonly seconds: number;
  /** Messages per second, before and while a number is throttled. */
  readonly rate: number;
  readonly throttledSeconds: number;
}

export interface ChatResult {
  readonly accept: LoadResult;
  readonly jobs: number;
  /** From the first to the last message that the provider accepted. */
  readonly sendsPerSecond: number;
  /** From the first send to the last callback in the event store: three statuses per message. */
  readonly statusesPerSecond: number;
  /** From the request to the provider's acceptance, for all tenants except the one whose number is throttled. */
  readonly calmMs: LatencySummary;
  readonly throttledMs: LatencySummary;
  readonly throttledSeconds: number;
}

/**
 * The embedded default with chat: HTTP, queue, actors, Graph API (a sandbox in this process), signed callbacks, event
 * store. First at full speed; then at a steady rate, before and while one tenant's number is throttled.
 */
export async function chatPath({ seconds, rate, throttledSeconds }: ChatLoad): Promise<ChatResult> {
  let isThrottling = false;
  const sandbox = startGraphSandbox({
    webhookSecret: SECRET,
    clock: systemClock,
    random: systemRandom,
    telemetry: noTelemetry,
    isThrottled: (phoneNumberId) => isThrottling && phoneNumberId === numberOf(0),
  });
  const home = await temporaryHome();
  const server = await startWaybill(home.path, { WHATSAPP_API_URL: sandbox.url, WEBHOOK_SECRET: SECRET });
  try {
    sandbox.callBack(server.url);
    const tenants = await chatTenants(server);
    const load = { path: "/v1/send/whatsapp", body: BODY, apiKeys: tenants.map((tenant) => tenant.apiKey) };
    const target = { ...load, host: new URL(server.url).hostname, port: Number(new URL(server.url).port) };

    const accept = await drive({ ...target, connections: 32, seconds, rate: null, warmUpSeconds: 1 });
    const fast = (await allEvents(server, tenants)).flat();
    const firstMs = fast.reduce((first, job) => Math.min(first, job.sentMs), Number.POSITIVE_INFINITY);
    const lastMs = fast.reduce((last, job) => Math.max(last, job.sentMs), 0);
    const lastEventMs = fast.reduce((last, job) => Math.max(last, job.lastMs), 0);

    await drive({ ...target, connections: 16, seconds: throttledSeconds, rate, warmUpSeconds: 1 });
    const throttledFromMs = Date.now();
    isThrottling = true;
    await drive({ ...target, connections: 16, seconds: throttledSeconds, rate, warmUpSeconds: 0 });
    isThrottling = false;

    const [, ...others] = await allEvents(server, tenants);
    const steady = others.flat().filter((job) => job.acceptedMs > lastEventMs);
    const waits = (jobs: typeof steady) => summarise(jobs.map((job) => job.sentMs - job.acceptedMs));
    return {
      accept,
      jobs: fast.length,
      sendsPerSecond: Math.round((fast.length * 1000) / (lastMs - firstMs)),
      statusesPerSecond: Math.round((fast.length * 3000) / (lastEventMs - firstMs)),
      calmMs: waits(steady.filter((job) => job.acceptedMs < throttledFromMs)),
      throttledMs: waits(steady.filter((job) => job.acceptedMs >= throttledFromMs)),
      throttledSeconds,
    };
  } finally {
    await server.kill();
    await sandbox.stop();
    await home.remove();
  }
}

async function chatTenants(server: Waybill): Promise<readonly LoadTenant[]> {
  await server.operator("PUT", "/plans/load", { requests_per_minute: 1_000_000 });
  const tenants: LoadTenant[] = [];
  for (let i = 0; i < TENANTS; i += 1) {
    const id = `chat-${i}`;
    const tenant = { id, name: id, plan: "load", channels: ["whatsapp"], allow_custom: ["whatsapp"] };
    await server.operator("POST", "/tenants", tenant);
    const sender = { phone_number_id: numberOf(i), access_token: "token" };
    await server.operator("PUT", `/tenants/${id}/credentials/whatsapp`, sender);
    const key = await server.operator("POST", `/tenants/${id}/keys`);
    tenants.push({ id, apiKey: key.body.api_key });
  }
  return tenants;
}

function numberOf(tenant: number): string {
  return String(900_000 + tenant);
}

interface SentJob {
  readonly acceptedMs: number;
  readonly sentMs: number;
  readonly lastMs: number;
}

/** The events of each tenant's jobs, read once there are three statuses for each accepted job. */
async function allEvents(server: Waybill, tenants: readonly LoadTenant[]): Promise<readonly (readonly SentJob[])[]> {
  const accepted = await acceptedJobs(server);
  return await eventually(
    "every message is read in the event store",
    async () => {
      const all: (readonly SentJob[])[] = [];
      for (const tenant of tenants) all.push(await readJobs(server, tenant));
      return all.flat().length === accepted ? all : null;
    },
    SETTLED_MS,
  );
}

async function readJobs(server: Waybill, tenant: LoadTenant): Promise<readonly SentJob[]> {
  const { byJob, ids, sentIds } = await readAllEvents(server, tenant);
  // No spread: there may be more events than a call can have arguments.
  const lastMs = eventTimeMs(ids.reduce((last, id) => Math.max(last, id), 0));
  const whole = [...sentIds].filter(([jobId]) => byJob.get(jobId)?.length === 3);
  return whole.map(([jobId, eventId]) => ({ acceptedMs: jobTimeMs(jobId), sentMs: eventTimeMs(eventId), lastMs }));
}

async function acceptedJobs(server: Waybill): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const line = /^waybill_http_requests_total\{(?=[^}]*route="send_whatsapp")(?=[^}]*status="202")[^}]*\} (\d+)$/m;
  return Number(line.exec(metrics)?.[1] ?? 0);
}
