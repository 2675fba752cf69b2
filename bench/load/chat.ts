import { type NumberTrouble, startGraphSandbox } from "../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { CHAT, createChatTenants, formatNumber, readChats, type SentChat } from "../../test/support/chat-load.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { LoadTenant } from "../../test/support/load.ts";
import { startWaybill, temporaryHome, type Waybill } from "../../test/support/waybill.ts";
import { noTelemetry } from "./bench-world.ts";
import { drive, type LoadResult } from "./driver.ts";
import { type LatencySummary, round, summarise } from "./latency.ts";

/** Each has its own number, because one number sends at most eighty messages per second. */
const TENANTS = 40;
const SECRET = "a webhook secret of the benchmark";
const SETTLED_MS = 180_000;
const BODY = JSON.stringify(CHAT);

export interface ChatLoad {
  /** Duration of the run at full speed. */
  readonly seconds: number;
  /** Messages per second, before and while a number is throttled or fails. */
  readonly rate: number;
  readonly troubledSeconds: number;
}

export interface ChatResult {
  readonly accept: LoadResult;
  readonly jobs: number;
  /** From the first to the last message that the provider accepted. */
  readonly sendsPerSecond: number;
  /** From the first send to the last callback in the event store: three statuses per message. */
  readonly statusesPerSecond: number;
  /** From the request to the provider's acceptance, for all tenants except the one whose number is in trouble. */
  readonly calmMs: LatencySummary;
  readonly throttledMs: LatencySummary;
  readonly failingMs: LatencySummary;
  /** After it has failed for `troubledSeconds`. */
  readonly failingCallsPerSecond: number;
  readonly troubledSeconds: number;
}

/**
 * The embedded default with chat: HTTP, queue, actors, Graph API (a sandbox in this process), signed callbacks, event
 * store. First at full speed; then at a steady rate, before and while one tenant's number is throttled, and while the
 * provider fails for it.
 */
export async function chatPath({ seconds, rate, troubledSeconds }: ChatLoad): Promise<ChatResult> {
  let trouble: NumberTrouble | null = null;
  let asked = 0;
  const sandbox = startGraphSandbox({
    webhookSecret: SECRET,
    clock: systemClock,
    random: systemRandom,
    telemetry: noTelemetry,
    findTrouble: (phoneNumberId) => {
      if (trouble === null || phoneNumberId !== formatNumber(0)) return null;
      asked += 1;
      return trouble;
    },
  });
  const home = await temporaryHome();
  const server = await startWaybill(home.path, { WHATSAPP_API_URL: sandbox.url, WEBHOOK_SECRET: SECRET });
  try {
    sandbox.callBack(server.url);
    const tenants = await createChatTenants(server, TENANTS);
    const load = { path: "/v1/send/whatsapp", body: BODY, apiKeys: tenants.map((tenant) => tenant.apiKey) };
    const target = { ...load, host: new URL(server.url).hostname, port: Number(new URL(server.url).port) };

    const accept = await drive({ ...target, connections: 32, seconds, rate: null, warmUpSeconds: 1 });
    const fast = (await allEvents(server, tenants)).flat();
    const firstMs = fast.reduce((first, job) => Math.min(first, job.sentMs), Number.POSITIVE_INFINITY);
    const lastMs = fast.reduce((last, job) => Math.max(last, job.sentMs), 0);
    const lastEventMs = fast.reduce((last, job) => Math.max(last, job.lastMs), 0);

    const steadily = { ...target, connections: 16, seconds: troubledSeconds, rate, warmUpSeconds: 0 };
    await drive({ ...steadily, warmUpSeconds: 1 });
    const throttledFromMs = Date.now();
    trouble = "throttled";
    await drive(steadily);
    const failingFromMs = Date.now();
    [trouble, asked] = ["failing", 0];
    await drive(steadily);
    // By then the pauses are long: messages queued in this period wait for as long as the number fails.
    const [askedBefore, countedFromMs] = [asked, performance.now()];
    await drive({ ...steadily, seconds: troubledSeconds / 4 });
    const failingCallsPerSecond = round(((asked - askedBefore) * 1000) / (performance.now() - countedFromMs));
    trouble = null;

    const [, ...others] = await allEvents(server, tenants);
    const steady = others.flat().filter((job) => job.acceptedMs > lastEventMs);
    const waits = (jobs: typeof steady) => summarise(jobs.map((job) => job.sentMs - job.acceptedMs));
    return {
      accept,
      jobs: fast.length,
      sendsPerSecond: Math.round((fast.length * 1000) / (lastMs - firstMs)),
      statusesPerSecond: Math.round((fast.length * 3000) / (lastEventMs - firstMs)),
      calmMs: waits(steady.filter((job) => job.acceptedMs < throttledFromMs)),
      throttledMs: waits(steady.filter((job) => isBetween(job, throttledFromMs, failingFromMs))),
      failingMs: waits(steady.filter((job) => job.acceptedMs >= failingFromMs)),
      failingCallsPerSecond,
      troubledSeconds,
    };
  } finally {
    await server.kill();
    await sandbox.stop();
    await home.remove();
  }
}

function isBetween({ acceptedMs }: SentChat, fromMs: number, untilMs: number): boolean {
  return acceptedMs >= fromMs && acceptedMs < untilMs;
}

/** The events of each tenant's jobs, read once there are three statuses for each accepted job. */
async function allEvents(server: Waybill, tenants: readonly LoadTenant[]): Promise<readonly (readonly SentChat[])[]> {
  const accepted = await acceptedJobs(server);
  return await eventually(
    "every message is read in the event store",
    async () => {
      const all: (readonly SentChat[])[] = [];
      for (const tenant of tenants) all.push(await readChats(server, tenant));
      return all.flat().length === accepted ? all : null;
    },
    SETTLED_MS,
  );
}

async function acceptedJobs(server: Waybill): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const line = /^waybill_http_requests_total\{(?=[^}]*route="send_whatsapp")(?=[^}]*status="202")[^}]*\} (\d+)$/m;
  return Number(line.exec(metrics)?.[1] ?? 0);
}
