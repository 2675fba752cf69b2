import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "ioredis";
import { CHANNELS } from "../../../src/app/channels.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { FENCED, type NewJob, type Settlement } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { PULL, ROOM } from "./queue-pulls.ts";

let redis: RedisServer;
let queue: RedisQueue;
const telemetry = new QuietTelemetry();
const jobIds = new JobIds(systemClock, systemRandom);

beforeAll(async () => {
  redis = await startRedis(["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
  await redis.client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await eventually("the cluster is whole", async () =>
    String(await redis.client.call("CLUSTER", "INFO")).includes("cluster_state:ok"),
  );
  const address = { kind: "cluster", urls: [redis.url] } as const;
  queue = new RedisQueue({
    channels: CHANNELS,
    address,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  await queue.start();
}, 90_000);

afterAll(async () => {
  await queue.stop();
  await redis.stop();
});

function newJob(): NewJob {
  const recipient = "ann@example.com";
  return { jobId: jobIds.next(), channel: "email", recipient, payload: "{}", idempotency: null };
}

test("every verb works on a Redis Cluster, for tenants of many shards at once", async () => {
  const tenants: TenantRef[] = Array.from({ length: 40 }, (_, i) => ({ tenantId: `tenant-${i}`, shard: i % 8 }));
  const answers = await Promise.all(tenants.map((tenant) => queue.accept(tenant, 1000, newJob())));
  expect(answers.every((answer) => answer.kind === "accepted")).toBe(true);
  for (const [i, tenant] of tenants.entries()) {
    const lease = await queue.acquire(tenant.shard, "dispatcher", "test", null);
    if (lease === null) throw new Error("the lease is taken");
    const tenantQueue = { tenantId: tenant.tenantId, channel: "email" } as const;
    const pulled = await queue.pull(lease, {
      ...PULL,
      tenantQueues: [{ tenantQueue, after: null, entriesMax: 9, bytesMax: ROOM }],
    });
    if (pulled === FENCED) throw new Error("fenced");
    const [job] = pulled.tenantQueues[0]?.jobs ?? [];
    const answer = answers[i];
    if (job === undefined || answer?.kind !== "accepted") throw new Error("no job");
    expect(job.jobId).toBe(answer.jobId);
    const event = { type: "sent", result: {} } as const;
    const providerRef = `wamid.${i}`;
    await queue.settle(lease, [{ kind: "final", job, status: "success", result: {}, event, providerRef }]);
    const { jobId } = job;
    const report = {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
    } as const;
    expect(await queue.observe(tenant, report)).toBe("recorded");
    expect((await queue.job(tenant, jobId))?.events.map(({ type }) => type)).toEqual(["sent", "delivered"]);
    await queue.release(lease);
  }
  const found = await queue.findReferencedJobs(tenants.map((_, i) => `wamid.${i}`));
  expect(found.map((address) => address?.tenantId)).toEqual(tenants.map(({ tenantId }) => tenantId));
  const recorder = await queue.acquire(0, "recorder", "test", null);
  if (recorder === null) throw new Error("the lease is taken");
  const { batches } = await queue.record([{ lease: recorder, done: null, refused: null, takes: true }]);
  expect(batches.flatMap(({ pieces }) => pieces.flatMap(({ rows }) => rows))).toHaveLength(10);
  // No log line is written while references are stored as before.
  expect(telemetry.lines).toEqual([]);
});

test("a hanging node does not hold up a settlement of a shard on another one, whatever its reference", async () => {
  const counted: number[] = [];
  const watching = new (class extends QuietTelemetry {
    override count(name?: string, _labels?: object, by = 1): void {
      if (name === "references_not_kept") counted.push(by);
    }
  })();
  const address = { kind: "cluster", urls: [redis.url] } as const;
  const other = new RedisQueue({
    channels: CHANNELS,
    address,
    clock: systemClock,
    random: systemRandom,
    telemetry: watching,
  });
  await other.start();
  const owner: Cluster = Reflect.get(other, "owner");
  const evalsha = owner.evalsha.bind(owner);
  let hung: PromiseWithResolvers<never> | null = Promise.withResolvers<never>();
  Object.assign(owner, {
    evalsha: (...args: Parameters<typeof evalsha>) =>
      hung !== null && String(args[2]).startsWith("wb:{ref") ? hung.promise : evalsha(...args),
  });
  const tenant: TenantRef = { tenantId: "tenant-9", shard: 9 };
  for (let i = 0; i < 4; i += 1) await other.accept(tenant, 1000, newJob());
  const lease = await other.acquire(9, "dispatcher", "test", null);
  if (lease === null) throw new Error("the lease is taken");
  const tenantQueue = { tenantId: tenant.tenantId, channel: "email" } as const;
  const pulled = await other.pull(lease, {
    ...PULL,
    tenantQueues: [{ tenantQueue, after: null, entriesMax: 9, bytesMax: ROOM }],
  });
  const jobs = pulled === FENCED ? [] : (pulled.tenantQueues[0]?.jobs ?? []);
  const [plain, ...named] = jobs.map((job, i): Settlement => {
    const event = { type: "sent", result: {} } as const;
    const end = { kind: "final", job, status: "success", result: {}, event } as const;
    return i === 0 ? end : { ...end, providerRef: `hung.${i % 3}` };
  });
  if (plain === undefined) throw new Error("no job");
  const readStatus = async (at: number) => (await other.job(tenant, jobs[at]?.jobId ?? ""))?.status;
  const begunMs = performance.now();
  const first = other.settle(lease, [plain, ...named.slice(0, 1)]);
  await eventually("the one without a reference lands", async () => (await readStatus(0)) === "success");
  expect(await readStatus(1)).toBe("running");
  expect(await first).toBe("settled");
  expect(performance.now() - begunMs).toBeLessThan(8_000);
  expect(await other.settle(lease, named)).toBe("settled");
  hung.reject(new Error("Command timed out."));
  hung = null;
  await eventually("what was not kept is counted", async () => counted.length > 0);
  expect(counted.every((by) => by > 0)).toBe(true);
  expect(watching.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
  await eventually("references are kept again", async () => {
    await other.settle(lease, named);
    return (await other.findReferencedJobs(["hung.1", "hung.2"])).every((found) => found?.tenantId === "tenant-9");
  });
  await eventually("it is told of", () => watching.lines.at(-1)?.startsWith("info"));
  await other.stop();
}, 90_000);

test("calls to a cluster that is away fail within a bound, and succeed once it is back", async () => {
  const tenant: TenantRef = { tenantId: "tenant-0", shard: 0 };
  await redis.kill();
  await expect(queue.accept(tenant, 1000, newJob())).rejects.toThrow("the queue did not answer");
  await expect(queue.probe.check()).rejects.toThrow();
  await redis.restart();
  await eventually("it takes jobs again", async () => {
    const answer = await queue.accept(tenant, 1000, newJob()).catch(() => null);
    return answer?.kind === "accepted";
  });
}, 90_000);
