import { JobIds } from "../../src/domain/ids.ts";
import { FENCED, type Lease } from "../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { createTenants } from "../../test/support/load.ts";
import { startWaybill, temporaryHome, type Waybill } from "../../test/support/waybill.ts";
import { signed, status, webhookBody } from "../../test/support/whatsapp-webhook.ts";
import { openBenchQueue } from "./bench-queue.ts";
import { redisCpuMs, startBenchRedis } from "./bench-redis.ts";
import { readCpuMs } from "./child.ts";
import { type LatencySummary, summarise } from "./latency.ts";

const TENANTS = 20;
const CONNECTIONS = 16;
/** No pull here is this large. */
const PULL_BYTES = 64 * 1024 * 1024;
const SECRET = "webhook-secret-of-the-benchmark";

export interface WebhookVariant {
  /** Statuses per signed body. */
  readonly perBody: number;
  /** Whether a status names its job; otherwise the message's id leads to the job. */
  readonly isNamed: boolean;
}

export interface WebhookRound {
  readonly statusesPerSecond: number;
  /** From a call to its 200. */
  readonly latencyMs: LatencySummary;
  /** CPU of the server process per status, in microseconds, without Redis and the driver. */
  readonly serverMicros: number;
  /** CPU of Redis per status, in microseconds. */
  readonly redisMicros: number;
}

export interface WebhookTarget {
  round(variant: WebhookVariant, statuses: number): Promise<WebhookRound>;
  stop(): Promise<void>;
}

interface HandedOver extends TenantRef {
  readonly jobId: string;
}

/** One API process on a durable Redis. Every status is new to it: `delivered` and `read` for jobs sent before. */
export async function webhookTarget(): Promise<WebhookTarget> {
  const redis = await startBenchRedis();
  const home = await temporaryHome();
  const server = await startWaybill(home.path, { ROLES: "api", REDIS_URL: redis.url, WEBHOOK_SECRET: SECRET });
  const queue = await openBenchQueue(redis.url);
  const tenants = await openTenants(server);
  const leases = new Map<number, Lease>();
  for (const { shard } of tenants) {
    if (leases.has(shard)) continue;
    const lease = await queue.acquire(shard, "dispatcher", "bench", null);
    if (lease !== null) leases.set(shard, lease);
  }
  return {
    async round(variant, statuses) {
      const jobs: HandedOver[] = [];
      for (const tenant of tenants) {
        const lease = leases.get(tenant.shard);
        if (lease === undefined) throw new Error("a shard is not ours");
        jobs.push(...(await handOver(queue, { tenant, lease, count: Math.ceil(statuses / 2 / tenants.length) })));
      }
      const calls = buildCalls(jobs, variant);
      const before = await redisCpuMs(redis.client);
      const run = await measure(server, calls);
      const redisMs = (await redisCpuMs(redis.client)) - before;
      return { ...run, redisMicros: Math.round((redisMs * 1000) / (2 * jobs.length)) };
    },
    async stop() {
      await queue.stop();
      await server.kill();
      await redis.stop();
      await home.remove();
    },
  };
}

async function openTenants(server: Waybill): Promise<readonly TenantRef[]> {
  const created = await createTenants(server, TENANTS);
  const answers = await Promise.all(created.map(({ id }) => server.operator("GET", `/tenants/${id}`)));
  return answers.map(({ body }) => ({ tenantId: body.id, shard: body.shard }));
}

interface Filling {
  readonly tenant: TenantRef;
  readonly lease: Lease;
  readonly count: number;
}

/** Queues jobs and records them as sent, as the dispatcher does. */
async function handOver(queue: RedisQueue, { tenant, lease, count }: Filling): Promise<readonly HandedOver[]> {
  const ids = new JobIds(systemClock, systemRandom);
  const accepts: Promise<unknown>[] = [];
  for (let i = 0; i < count; i += 1) {
    const job = { jobId: ids.next(), channel: "whatsapp", recipient: "5491122334455", payload: "{}" } as const;
    accepts.push(queue.accept(tenant, null, { ...job, idempotency: null }));
    // If all were created at once, the jobs of a second would share a few dozen buckets; real ones arrive over time.
    if (i % 100 === 0) await Bun.sleep(1);
  }
  await Promise.all(accepts);
  const tenantQueue = { tenantId: tenant.tenantId, channel: "whatsapp" } as const;
  const jobs: HandedOver[] = [];
  for (let after: string | null = null; ; ) {
    const tenantQueues = [{ tenantQueue, after, entriesMax: 256, bytesMax: PULL_BYTES }];
    const pulled = await queue.pull(lease, {
      tenantQueues,
      survey: false,
      bytesMax: PULL_BYTES,
      shardTimeMs: null,
      confirmedSkewMs: null,
    });
    const mail = pulled === FENCED ? [] : (pulled.tenantQueues[0]?.jobs ?? []);
    if (mail.length === 0) return jobs;
    after = mail.at(-1)?.entryId ?? null;
    const event = { type: "sent", result: {} } as const;
    const settlements = mail.map((job) => {
      const final = { kind: "final", job, status: "success", result: {}, event } as const;
      return { ...final, providerRef: formatWamid(job.jobId) };
    });
    await queue.settle(lease, settlements);
    jobs.push(...mail.map(({ jobId }) => ({ ...tenant, jobId })));
  }
}

/** Has the length of the provider's ids. */
function formatWamid(jobId: string): string {
  return `wamid.HBgNNTQ5MTEyMjMzNDQ1NRUCABEYE${jobId}`;
}

interface Signed {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly signature: string;
  readonly statuses: number;
}

function buildCalls(jobs: readonly HandedOver[], { perBody, isNamed }: WebhookVariant): readonly Signed[] {
  const all = jobs.flatMap(({ tenantId, jobId }) =>
    ["delivered", "read"].map((word) =>
      status(formatWamid(jobId), word, {
        ...(isNamed ? { biz_opaque_callback_data: `${tenantId}/${jobId}` } : null),
        pricing: { billable: true, pricing_model: "PMP", type: "regular", category: "utility" },
      }),
    ),
  );
  return Array.from({ length: Math.ceil(all.length / perBody) }, (_, i) => {
    const statuses = all.slice(i * perBody, (i + 1) * perBody);
    return { ...signed(JSON.stringify(webhookBody({ statuses })), SECRET), statuses: statuses.length };
  });
}

async function measure(server: Waybill, calls: readonly Signed[]): Promise<Omit<WebhookRound, "redisMicros">> {
  const latenciesMs: number[] = [];
  let next = 0;
  let statuses = 0;
  const cpuBefore = await readCpuMs(server.pid);
  const startedMs = performance.now();
  const caller = async () => {
    for (let call = calls[next++]; call !== undefined; call = calls[next++]) {
      const { body, signature } = call;
      const sentMs = performance.now();
      const headers = { "X-Hub-Signature-256": signature, "Content-Type": "application/json" };
      const response = await fetch(`${server.url}/webhook/whatsapp`, { method: "POST", headers, body });
      if (response.status !== 200) throw new Error(`a call was answered ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
      latenciesMs.push(performance.now() - sentMs);
      statuses += call.statuses;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, caller));
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuMs = (await readCpuMs(server.pid)) - cpuBefore;
  return {
    statusesPerSecond: Math.round(statuses / seconds),
    latencyMs: summarise(latenciesMs),
    serverMicros: Math.round((cpuMs * 1000) / statuses),
  };
}
