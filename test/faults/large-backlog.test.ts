import { afterEach, expect, test } from "bun:test";
import { FaultProxy } from "../support/fault-proxy.ts";
import { recordProof } from "../support/proof.ts";
import { FaultWorld, mebibytes, readSize, sendMany, TEST_LIMIT_MS, waitForEnds } from "./fault-world.ts";

const TENANTS = readSize("BACKLOG_TENANTS", 14);
const MESSAGES = readSize("BACKLOG_MESSAGES", 8);
const MEBIBYTE = 1024 * 1024;
const MESSAGE_BYTES = readSize("BACKLOG_BYTES", MEBIBYTE);
/**
 * The throughput between Redis and the process that delivers. Reading the whole backlog takes longer than any deadline.
 */
const BYTES_PER_SECOND = readSize("BACKLOG_BYTES_PER_SECOND", 10 * MEBIBYTE);

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "a backlog of large messages of many tenants drains",
  async () => {
    const redis = await world.redis();
    const relay = await world.relay();
    const wanted = Array.from({ length: TENANTS }, (_, i) => ({ id: `large-${i}` }));
    const { home, tenants } = await world.seededHome(wanted);
    const urls = { REDIS_URL: redis.url, SMTP_URL: relay.url() };
    // No process delivers while they are accepted.
    const front = await world.start(home, { ...urls, ROLES: "api" });
    const text = "x".repeat(MESSAGE_BYTES);
    // A job that exceeds the tenant's quota of the queue is not accepted, and not part of the promise.
    const jobs = await sendMany(
      front,
      TENANTS * MESSAGES,
      (index) => {
        const tenant = tenants[index % TENANTS];
        if (tenant === undefined) throw new Error("a tenant each");
        const mail = { to_address: `u${index}@example.com`, subject: "Hello", html: "<p>Hello {{.name}}</p>" };
        return { tenant, body: { ...mail, data: { name: "Ann", text } } };
      },
      4,
    );
    await front.stop();
    const queuedBytes = Number(/used_memory:(\d+)/.exec(await redis.client.info("memory"))?.[1]);

    const proxy = world.undo.add(await FaultProxy.start({ path: redis.path }), (one) => one.stop());
    proxy.bandwidth(BYTES_PER_SECOND);
    const REDIS_URL = `redis://127.0.0.1:${proxy.port}`;
    const startedMs = performance.now();
    const waybill = await world.start(home, { ...urls, REDIS_URL, ROLES: "api,dispatcher,recorder" });
    const ends = await waitForEnds(waybill, jobs, 45_000);
    const drainedMs = Math.round(performance.now() - startedMs);
    const peakBytes = Number(/used_memory_peak:(\d+)/.exec(await redis.client.info("memory"))?.[1]);
    const delivered = [...ends.values()].filter((status) => status === "success").length;
    recordProof({
      fault: `a backlog of ${TENANTS} tenants with ${MESSAGES} messages of ${mebibytes(MESSAGE_BYTES)} MiB, ${mebibytes(BYTES_PER_SECOND)} MiB/s`,
      accepted: jobs.length,
      lost: jobs.length - delivered,
      sentTwice: relay.repeats,
      sentTwiceAllowed: 0,
      recoveryMs: drainedMs,
      note: `Redis held ${mebibytes(queuedBytes)} MiB, at most ${mebibytes(peakBytes)} MiB`,
    });
    expect(new Set(jobs.map(({ tenant }) => tenant.id)).size).toBe(TENANTS);
    expect(delivered).toBe(jobs.length);
    expect(relay.repeats).toBe(0);
    // Replies to a slow reader take up Redis's memory, too.
    expect(peakBytes).toBeLessThan(2 * queuedBytes + 256 * MEBIBYTE);
  },
  TEST_LIMIT_MS,
);
