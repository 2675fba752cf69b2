import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Lease, type NewJob } from "../../../src/domain/jobs/queue.ts";
import { shardPrefix } from "../../../src/engine/queue/keys.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { recipientIndex } from "../../../src/storage/recipient-index.ts";
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

/** The reason why a message of the tenant to this address would be suppressed, according to its next pull. */
async function reasonFor(tenant: typeof acme, recipient: string, about: Partial<NewJob> = {}): Promise<string | null> {
  const base = { jobId: jobIds.next(), channel: "email", recipient, payload: '{"to":"x"}', idempotency: null } as const;
  const job = { ...base, ...about };
  await queue.accept(tenant, 1_000, job);
  const tenantQueue = { tenantId: tenant.tenantId, channel: "email" } as const;
  const pulled = await queue.pull(lease, {
    ...PULL,
    tenantQueues: [{ tenantQueue, after: null, entriesMax: 64, bytesMax: ROOM }],
  });
  if (pulled === FENCED) throw new Error("the lease is gone");
  const found = pulled.tenantQueues[0]?.jobs.find(({ jobId }) => jobId === job.jobId);
  if (found === undefined) throw new Error("the job was not pulled");
  const now = await queue.lookAgain(lease, found);
  expect(now).toEqual(pickSuppression(found));
  const { suppressed, suppressedTopic } = found;
  return suppressedTopic === undefined ? suppressed : `${suppressed} from ${suppressedTopic}`;
}

function pickSuppression({ suppressed, suppressedTopic }: QueuedJob) {
  return suppressedTopic === undefined ? { suppressed } : { suppressed, suppressedTopic };
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

/** Each way in which an entry can carry its topic. */
const TOPICAL: [string, Partial<NewJob>][] = [
  ["alone", {}],
  ["behind a trace", { traceparent: `00-${"5e".repeat(16)}-${"a1".repeat(8)}-01` }],
  ["behind tags", { tags: [{ name: "topic", value: "offers" }], dueMs: 1_600_000_000_000, template: "t" }],
  ["of a stored payload", { payload: "", stored: { sha256: "ab".repeat(32), bytes: 300_000 } }],
  [
    "of a stored payload, behind tags",
    { payload: "", stored: { sha256: "ab".repeat(32), bytes: 9 }, tags: [{ name: "a", value: "b" }], template: "t" },
  ],
];

test.each(TOPICAL)("a topic's suppression stops messages on it alone; the topic stands %s", async (_, given) => {
  const about = (topic: string) => reasonFor(acme, "ann@example.com", { ...given, topic });
  const nothing = () => reasonFor(acme, "ann@example.com", given);
  await queue.putSuppression(acme, "ann@example.com\tproduct news", "unsubscribed");
  expect(await about("product news")).toBe("unsubscribed from product news");
  expect([await about("product"), await about("news"), await nothing()]).toEqual([null, null, null]);
  expect(await reasonFor(acme, "bob@example.com", { ...given, topic: "product news" })).toBeNull();
  // An entry for all messages stops every topic, and is the one that is reported.
  await queue.putSuppression(acme, "ann@example.com", "bounced");
  expect([await about("product news"), await about("receipts"), await nothing()]).toEqual(Array(3).fill("bounced"));
  await queue.removeSuppression(acme, "ann@example.com");
  expect([await about("product news"), await nothing()]).toEqual(["unsubscribed from product news", null]);
  await queue.removeSuppression(acme, "ann@example.com\tproduct news");
  expect(await about("product news")).toBeNull();
});

test("an erased recipient's topics are found under the erased name, but for those that were taken back", async () => {
  const index = recipientIndex(new Uint8Array(32).fill(7));
  await queue.putSuppression(acme, "sha:", index.erasedNamesKey("acme"));
  await queue.putSuppression(acme, index.erasedName("acme", "ann@example.com\tnews"), "unsubscribed");
  const about = (topic: string) => reasonFor(acme, "ann@example.com", { topic });
  expect([await about("news"), await about("offers")]).toEqual(["unsubscribed from news", null]);
  expect(await reasonFor(acme, "ann@example.com")).toBeNull();
  await queue.removeSuppression(acme, "ann@example.com\tnews");
  expect(await about("news")).toBeNull();
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
