import { afterEach, expect, test } from "bun:test";
import { recordProof } from "../support/proof.ts";
import { sendSteadily } from "../support/steady-sender.ts";
import {
  boundMs,
  FaultWorld,
  formatHost,
  OWN_RELAYS,
  readSize,
  sendMany,
  TEST_LIMIT_MS,
  untilOwned,
} from "./fault-world.ts";

const TENANTS = readSize("HANGING_TENANTS", 60);
const MAILS_EACH = readSize("HANGING_MAILS", 5);
const SECONDS = readSize("HANGING_SECONDS", 10);
/** Far above the usual time (milliseconds), and far below the former one (minutes). */
const NEIGHBOUR_MS_MAX = 5_000;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "tenants whose mail servers take ten seconds for a message do not slow another tenant",
  async () => {
    const redis = await world.redis();
    const relay = await world.relay();
    const slow = Array.from({ length: TENANTS }, (_, i) => ({ id: `slow-${i}`, smtpUrl: relay.url(formatHost(i)) }));
    const { home, tenants } = await world.seededHome([{ id: "healthy" }, ...slow]);
    slow.forEach((_, i) => relay.behave({ answerMs: 10_000 }, formatHost(i)));
    const waybill = await world.start(home, { ...OWN_RELAYS, REDIS_URL: redis.url, SMTP_URL: relay.url() });
    await untilOwned(redis);
    const [healthy, ...others] = tenants;
    if (healthy === undefined) throw new Error("a healthy tenant");
    const load = { tenants: [healthy], perSecond: 10, patienceMs: 10_000 };
    const alone = await sendSteadily(waybill, relay, { ...load, name: "alone", seconds: 3 });

    const queued = await sendMany(waybill, TENANTS * MAILS_EACH, (index) => {
      const tenant = others[index % TENANTS];
      if (tenant === undefined) throw new Error("a tenant each");
      return { tenant, body: { to_address: `slow-${index}@example.com`, subject: "Hello", html: "<p>Hello</p>" } };
    });
    expect(queued).toHaveLength(TENANTS * MAILS_EACH);
    const beside = await sendSteadily(waybill, relay, { ...load, name: "beside", seconds: SECONDS });
    recordProof({
      fault: `${TENANTS} tenants whose relay takes 10 s for a message`,
      accepted: beside.accepted,
      neighbourMs: beside.handOverMs.max,
      neighbourRatio: beside.handOverMs.p99 / alone.handOverMs.p99,
      note: `p50 ${beside.handOverMs.p50} ms beside ${alone.handOverMs.p50} ms alone; ${beside.missing} still waited at the end`,
    });
    expect(beside.accepted).toBe(beside.asked);
    expect(beside.handOverMs.max).toBeLessThan(boundMs(NEIGHBOUR_MS_MAX, alone.handOverMs.max));
  },
  TEST_LIMIT_MS,
);

test(
  "tenants whose mail takes a shared mail server ten seconds a message do not slow one whose mail it takes at once",
  async () => {
    const redis = await world.redis();
    const relay = await world.relay();
    const slow = Array.from({ length: TENANTS }, (_, i) => ({ id: `slow-${i}` }));
    const { home, tenants } = await world.seededHome([{ id: "healthy" }, { id: "newcomer" }, ...slow]);
    const waybill = await world.start(home, { ...OWN_RELAYS, REDIS_URL: redis.url, SMTP_URL: relay.url() });
    await untilOwned(redis);
    const [healthy, newcomer, ...others] = tenants;
    if (healthy === undefined || newcomer === undefined) throw new Error("tenants");
    const load = { perSecond: 10, patienceMs: 5_000 };
    const alone = await sendSteadily(waybill, relay, { ...load, tenants: [healthy], name: "alone", seconds: 2 });

    const queued = await sendMany(waybill, TENANTS * MAILS_EACH, (index) => {
      const tenant = others[index % TENANTS];
      if (tenant === undefined) throw new Error("a tenant each");
      const to_address = `takes-10000-${index}@example.com`;
      return { tenant, body: { to_address, subject: "Hello", html: "<p>Hello</p>" } };
    });
    expect(queued).toHaveLength(TENANTS * MAILS_EACH);
    const seconds = Math.min(SECONDS, 8);
    const [beside, fresh] = await Promise.all([
      sendSteadily(waybill, relay, { ...load, tenants: [healthy], name: "beside", seconds }),
      sendSteadily(waybill, relay, { ...load, tenants: [newcomer], name: "fresh", seconds }),
    ]);
    recordProof({
      fault: `${TENANTS} tenants whose mail takes the relay of all 10 s a message`,
      accepted: beside.accepted + fresh.accepted,
      neighbourMs: Math.max(beside.handOverMs.max, fresh.handOverMs.max),
      neighbourRatio: beside.handOverMs.p99 / alone.handOverMs.p99,
      note: `p99 ${beside.handOverMs.p99} ms, of a tenant that had not sent before ${fresh.handOverMs.p99} ms`,
    });
    for (const { accepted, asked, missing, handOverMs } of [beside, fresh]) {
      expect([accepted, missing]).toEqual([asked, 0]);
      expect(handOverMs.p99).toBeLessThan(boundMs(2_000, alone.handOverMs.max));
    }
    // Meanwhile the relay has as many of their messages as it accepts.
    const served = relay.arrivals.filter(({ recipient }) => recipient.startsWith("takes-")).length;
    expect(served).toBeGreaterThanOrEqual(30);
  },
  TEST_LIMIT_MS,
);
