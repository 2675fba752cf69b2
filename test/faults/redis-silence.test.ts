import { afterEach, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { recordProof } from "../support/proof.ts";
import { FaultWorld, MAIL, readSize, sendMany, TEST_LIMIT_MS, untilOwned, waitForEnds } from "./fault-world.ts";

const SILENCE_MS = readSize("REDIS_SILENCE_MS", 12_000);
/** Long enough that all mails are in flight at one moment, and end before the silence does. */
const ANSWER_MS = 8_000;
const MAILS = readSize("REDIS_SILENCE_MAILS", 20);

let world = new FaultWorld();

afterEach(async () => {
  await world.undo.run();
  world = new FaultWorld();
}, 90_000);

async function behindProxy() {
  const redis = await world.redis();
  const proxy = world.undo.add(await FaultProxy.start({ path: redis.path }), (one) => one.stop());
  const relay = await world.relay();
  const { home, tenants } = await world.seededHome([{ id: "acme" }, { id: "globex" }]);
  const urls = { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, SMTP_URL: relay.url() };
  const waybill = await world.start(home, urls);
  await untilOwned(redis);
  const mail = (index: number) => {
    const tenant = tenants[index % tenants.length];
    if (tenant === undefined) throw new Error("two tenants");
    return { tenant, body: MAIL };
  };
  return { redis, proxy, relay, waybill, mail };
}

test(
  "connections to Redis that went silent are replaced, and accepting and delivering go on within seconds",
  async () => {
    const { proxy, relay, waybill, mail } = await behindProxy();
    const before = await sendMany(waybill, 10, mail);
    await waitForEnds(waybill, before, 10_000);
    const halfOpen = proxy.silenceExisting();
    const silencedAtMs = performance.now();
    expect(halfOpen).toBeGreaterThan(0);
    let accepted = 0;
    const answers = async () => {
      accepted += (await sendMany(waybill, 1, mail, 1)).length;
      return accepted > 0;
    };
    const isBack = await eventually("a request is accepted again", answers, 20_000).catch(() => false);
    const acceptedAfterMs = Math.round(performance.now() - silencedAtMs);
    const later = isBack ? await sendMany(waybill, 10, mail) : [];
    const ends = await waitForEnds(waybill, later, 15_000);
    const recoveryMs = Math.round(performance.now() - silencedAtMs);
    recordProof({
      fault: `${halfOpen} half-open connections to Redis`,
      accepted: later.length,
      lost: later.length - ends.size,
      sentTwice: relay.repeats,
      // A delivery whose outcome could not be written; here none is in flight.
      sentTwiceAllowed: 0,
      recoveryMs: isBack ? recoveryMs : Number.POSITIVE_INFINITY,
      note: isBack ? `accepting again after ${acceptedAfterMs} ms` : "nothing accepted within 20 s",
    });
    expect(isBack).toBe(true);
    expect(later).toHaveLength(10);
    expect(ends.size).toBe(10);
    expect(relay.repeats).toBe(0);
  },
  TEST_LIMIT_MS,
);

test(
  "a silence of Redis longer than a lease sends nothing twice",
  async () => {
    const { proxy, relay, waybill, mail } = await behindProxy();
    relay.behave({ answerMs: ANSWER_MS });
    const jobs = await sendMany(waybill, MAILS, mail);
    await eventually("all mails are with the relay", () => relay.unanswered === MAILS, 15_000);
    await proxy.silenceFor(SILENCE_MS);
    const endedAtMs = performance.now();
    const ends = await waitForEnds(waybill, jobs, 20_000);
    const recoveryMs = Math.round(performance.now() - endedAtMs);
    recordProof({
      fault: `${SILENCE_MS / 1000} s of silence from Redis, ${MAILS} mails under way`,
      accepted: jobs.length,
      lost: jobs.length - ends.size,
      sentTwice: relay.repeats,
      sentTwiceAllowed: 0,
      recoveryMs,
    });
    expect(jobs).toHaveLength(MAILS);
    expect(ends.size).toBe(MAILS);
    expect(relay.repeats).toBe(0);
  },
  70_000 + SILENCE_MS,
);
