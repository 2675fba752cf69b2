import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { FENCED, type Lease } from "../../../src/domain/queue.ts";
import { shardPrefix } from "../../../src/engine/queue/keys.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { aTenant } from "../../support/tenants.ts";
import { PULL, ROOM } from "./queue-pulls.ts";

const acme = aTenant();
const other = aTenant({ tenantId: "other" });
const jobIds = new JobIds(systemClock, systemRandom);
let redis: RedisServer;
let queue: RedisQueue;
let lease: Lease;

beforeAll(async () => {
  redis = await startRedis();
  const address = { kind: "socket", path: redis.path } as const;
  queue = new RedisQueue({
    channels: CHANNELS,
    address,
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  await queue.start();
}, 90_000);
beforeEach(async () => {
  await redis.client.flushall();
  lease = await acquired();
});
afterAll(async () => {
  await queue.stop();
  await redis.stop();
});

async function acquired(): Promise<Lease> {
  const got = await queue.acquire(0, "dispatcher", "test", null);
  if (got === null) throw new Error("somebody holds the lease");
  return got;
}

/** Why a message of the tenant to this address would be suppressed, as its next pull says. */
async function reasonFor(tenant: typeof acme, recipient: string): Promise<string | null> {
  const job = { jobId: jobIds.next(), channel: "email", recipient, payload: "{}", idempotency: null } as const;
  await queue.accept(tenant, 1_000, job);
  const tenantQueue = { tenantId: tenant.tenantId, channel: "email" } as const;
  const pulled = await queue.pull(lease, {
    ...PULL,
    tenantQueues: [{ tenantQueue, after: null, entriesMax: 64, bytesMax: ROOM }],
  });
  if (pulled === FENCED) throw new Error("the lease is gone");
  const found = pulled.tenantQueues[0]?.jobs.find(({ jobId }) => jobId === job.jobId);
  if (found === undefined) throw new Error("the job was not pulled");
  return found.suppressed;
}

const ann = { tenantId: "acme", address: "ann@example.com", reason: "bounced" } as const;

test("an added suppression holds for its tenant alone, and a removed one no longer holds", async () => {
  await queue.putSuppression(acme, "ann@example.com", "manual");
  expect(await reasonFor(acme, "ann@example.com")).toBe("manual");
  expect(await reasonFor(acme, "bob@example.com")).toBeNull();
  expect(await reasonFor(other, "ann@example.com")).toBeNull();
  await queue.removeSuppression(acme, "ann@example.com");
  expect(await reasonFor(acme, "ann@example.com")).toBeNull();
});

test("an index is complete with its last page, and takes no page after that", async () => {
  expect(await queue.loadSuppressions(lease, [], false)).toBe("loading");
  expect(await queue.loadSuppressions(lease, [ann], false)).toBe("loading");
  expect(await queue.loadSuppressions(lease, [], true)).toBe("loaded");
  expect(await reasonFor(acme, ann.address)).toBe("bounced");
  const late = { ...ann, address: "late@example.com" };
  expect(await queue.loadSuppressions(lease, [late], false)).toBe("loaded");
  expect(await reasonFor(acme, late.address)).toBeNull();
});

test("changes made during the fill win over a page that was read before", async () => {
  await queue.removeSuppression(acme, ann.address);
  await queue.putSuppression(acme, "bob@example.com", "unsubscribed");
  await queue.loadSuppressions(lease, [ann, { ...ann, address: "bob@example.com" }], false);
  await queue.loadSuppressions(lease, [], true);
  expect(await reasonFor(acme, ann.address)).toBeNull();
  expect(await reasonFor(acme, "bob@example.com")).toBe("unsubscribed");
  await queue.putSuppression(acme, ann.address, "manual");
  expect(await reasonFor(acme, ann.address)).toBe("manual");
});

test("only the shard's owner fills its index", async () => {
  await queue.release(lease);
  lease = await acquired();
  const stale = { ...lease, token: "1-stale" };
  expect(await queue.loadSuppressions(stale, [ann], true)).toBe(FENCED);
  expect(await reasonFor(acme, ann.address)).toBeNull();
  expect(await queue.loadSuppressions(lease, [], false)).toBe("loading");
});

test("a tenant that the queue could not remove is not taken for removed", async () => {
  const tenants = `${shardPrefix(acme.shard)}:tenants`;
  // Redis refuses commands for hashes on it, as it would while it was read-only, say.
  await redis.client.set(tenants, "no hash");
  await expect(queue.removeTenant(acme)).rejects.toThrow("WRONGTYPE");
  await redis.client.del(tenants);
  await queue.putSuppression(acme, ann.address, "manual");
  await queue.removeTenant(acme);
  expect(await reasonFor(acme, ann.address)).toBeNull();
});
