import { afterEach, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { recordProof } from "../support/proof.ts";
import { FaultWorld, MAIL, readSize, sendMany, TEST_LIMIT_MS, watchHealth } from "./fault-world.ts";

const TENANTS = readSize("MAILING_TENANTS", 1_000);
/** Loading all tenants in one go took several times as long. */
const ANSWER_MS_MAX = 2_000;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "a restart with mail of thousands of tenants, and a change of their plan, do not block the server",
  async () => {
    const redis = await world.redis();
    const relay = await world.relay();
    const wanted = Array.from({ length: TENANTS }, (_, i) => ({ id: `tenant-${i}` }));
    const { home, tenants } = await world.seededHome(wanted);
    const urls = { REDIS_URL: redis.url, SMTP_URL: relay.url() };
    const front = await world.start(home, { ...urls, ROLES: "api" });
    const sendAll = (server: typeof front) =>
      sendMany(
        server,
        TENANTS,
        (index) => {
          const tenant = tenants[index];
          if (tenant === undefined) throw new Error("a tenant each");
          return { tenant, body: { ...MAIL, to_address: `u${index}@example.com` } };
        },
        32,
      );
    const queued = await sendAll(front);
    await front.stop();
    expect(queued).toHaveLength(TENANTS);

    // Slow enough that all tenants have mail for some seconds.
    relay.behave({ answerMs: 100 });
    const startedMs = performance.now();
    const waybill = await world.start(home, { ...urls, ROLES: "api,dispatcher,recorder" });
    const watched = watchHealth(waybill);
    await eventually("the first mail is delivered", () => relay.taken.size > 0, 20_000);
    const firstMs = performance.now() - startedMs;
    const plan = await waybill.operator("PUT", "/plans/load", { requests_per_minute: 999_999 });
    const isDelivered = () => relay.taken.size === TENANTS;
    const allDelivered = await eventually("all mail is delivered", isDelivered, 30_000).catch(() => false);
    const drainedMs = performance.now() - startedMs;
    const longestMs = await watched.stop();
    recordProof({
      fault: `a restart with mail of ${TENANTS} tenants, and a change of their plan`,
      accepted: queued.length,
      lost: queued.length - relay.taken.size,
      sentTwice: relay.repeats,
      sentTwiceAllowed: 0,
      recoveryMs: Math.round(drainedMs),
      note: `the slowest answer took ${Math.round(longestMs)} ms, the first mail left after ${Math.round(firstMs)} ms`,
    });
    expect(plan.status).toBe(200);
    expect(allDelivered).toBe(true);
    expect(relay.repeats).toBe(0);
    expect(longestMs).toBeLessThan(ANSWER_MS_MAX);
  },
  TEST_LIMIT_MS,
);
