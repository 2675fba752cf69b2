import { describe, expect, test } from "bun:test";
import { chatLimits } from "../../../src/channels/whatsapp/limits.ts";
import { NumberPace } from "../../../src/channels/whatsapp/number-pace.ts";
import { LONGEST_WAITS } from "../../support/longest-waits.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const SENDER = { phoneNumberId: "1", accessToken: "token" };
const OTHER = { phoneNumberId: "2", accessToken: "token" };

/** Sends from the number as fast as its pace allows for a time, as one tenant; returns how many passed. */
async function drive(pace: NumberPace, clock: VirtualClock, forMs: number, answer: "taken" | "throttled" = "taken") {
  const untilMs = clock.monotonicMs() + forMs;
  let sent = 0;
  while (clock.monotonicMs() < untilMs) {
    const waitMs = pace.waitMs(SENDER, "acme");
    if (waitMs > 0) {
      await clock.advance(Math.min(Math.ceil(waitMs), untilMs - clock.monotonicMs()));
      continue;
    }
    const sentAtMs = pace.take(SENDER, "acme");
    sent += 1;
    if (answer === "taken") pace.succeeded(SENDER);
    else pace.slow(SENDER, sentAtMs);
  }
  return sent;
}

test("a number sends eighty messages a second, and one tenth of a second's worth at once after a rest", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  let atOnce = 0;
  while (pace.waitMs(SENDER, "acme") === 0) {
    pace.take(SENDER, "acme");
    atOnce += 1;
  }
  expect(atOnce).toBe(8);
  expect(await drive(pace, clock, 10_000)).toBeWithin(799, 802);
});

test("another number has a pace of its own", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  pace.slow(SENDER, pace.take(SENDER, "acme"));
  pace.pause(SENDER, 60_000);
  expect(pace.waitMs(SENDER, "acme")).toBeGreaterThan(0);
  expect(pace.waitMs(OTHER, "acme")).toBe(0);
});

test("a throttled number halves once for all messages in flight, recovers gradually, and then stays below the rate that was too high", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  await drive(pace, clock, 2_000);
  const sentAtMs = pace.take(SENDER, "acme");
  await clock.advance(100);
  for (let i = 0; i < 50; i += 1) pace.slow(SENDER, sentAtMs);
  await clock.advance(1);
  expect(await drive(pace, clock, 1_000)).toBeWithin(40, 50);
  expect(await drive(pace, clock, 1_000)).toBeWithin(43, 50);
  await drive(pace, clock, 20_000);
  expect(await drive(pace, clock, 1_000)).toBeWithin(71, 74);
});

test("a learned rate is forgotten in time, and the usual rate is never exceeded", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  pace.slow(SENDER, pace.take(SENDER, "acme"));
  await clock.advance(chatLimits.chatLearnedMs - 1_000);
  expect(await drive(pace, clock, 1_000)).toBeLessThan(82);
  await clock.advance(10_000);
  await drive(pace, clock, 1_000);
  expect(await drive(pace, clock, 1_000)).toBeWithin(80, 82);
});

test("a number that is throttled for a minute does not hammer, and is back soon after", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  expect(await drive(pace, clock, 60_000, "throttled")).toBeLessThan(250);
  await drive(pace, clock, 20_000);
  expect(await drive(pace, clock, 1_000)).toBeWithin(71, 74);
});

test("a paused number sends nothing until the pause is over, and is asked about now and then", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  pace.pause(SENDER, 60_000);
  pace.pause(SENDER, 10_000);
  expect(pace.waitMs(SENDER, "acme")).toBe(chatLimits.chatAskAgainMs);
  await clock.advance(59_999);
  expect(pace.waitMs(SENDER, "acme")).toBe(1);
  await clock.advance(1);
  expect(pace.waitMs(SENDER, "acme")).toBe(0);
});

test("no answer stops a number for longer than a job lasts", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  pace.pause(SENDER, Number.MAX_SAFE_INTEGER);
  await clock.advance(chatLimits.chatPauseMsMax);
  expect(pace.waitMs(SENDER, "acme")).toBe(0);
});

test("refused credentials stop the number until they change, and are reported once", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  expect(pace.refuse(SENDER, 30_000)).toBe(true);
  expect(pace.refuse(SENDER, 30_000)).toBe(false);
  expect(pace.waitMs(SENDER, "acme")).toBe(chatLimits.chatNewTokenMs);
  const renewed = { ...SENDER, accessToken: "new" };
  expect(pace.waitMs(renewed, "acme")).toBe(0);
  pace.succeeded(renewed);
  expect(pace.refuse(SENDER, 30_000)).toBe(true);
});

/** Tenants with endless mail that share the number, each woken only at its scheduled time. */
async function shareNumber(tenants: number, forMs: number) {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  const sent = new Map<string, number>();
  let asked = 0;
  const ask = (tenant: string) => {
    for (;;) {
      asked += 1;
      const waitMs = pace.waitMs(SENDER, tenant);
      if (waitMs > 0) return void clock.setTimer(Math.ceil(waitMs), () => ask(tenant));
      pace.take(SENDER, tenant);
      sent.set(tenant, (sent.get(tenant) ?? 0) + 1);
    }
  };
  for (let i = 0; i < tenants; i += 1) ask(`tenant-${i}`);
  await clock.advance(forMs);
  const counts = Array.from(sent.values());
  return { counts, asked, total: counts.reduce((sum, count) => sum + count, 0) };
}

test("tenants who share a number get equal shares of its whole rate, and are woken for their own turns only", async () => {
  const { counts, asked, total } = await shareNumber(200, 20_000);
  expect(total).toBeWithin(1_560, 1_620);
  expect(counts).toHaveLength(200);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(8);
  expect(asked / total).toBeLessThan(3);
});

test("a tenant that leaves without sending delays the others by no more than a moment", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  while (pace.waitMs(SENDER, "busy") === 0) pace.take(SENDER, "busy");
  for (let i = 0; i < 1_000; i += 1) pace.waitMs(SENDER, `gone-${i}`);
  // They were scheduled within the next seconds, but none comes.
  await clock.advance(chatLimits.chatTurnLateMsMax + 1_000 * 12.5 + 100);
  expect(pace.waitMs(SENDER, "new")).toBe(0);
  while (pace.waitMs(SENDER, "busy") === 0) pace.take(SENDER, "busy");
  expect(pace.waitMs(SENDER, "new")).toBeLessThan(3 * 12.5);
});

test("a quiet tenant's message waits for one message of each waiting tenant, not for all of a neighbour's", async () => {
  const clock = new VirtualClock();
  const pace = new NumberPace(clock, LONGEST_WAITS);
  while (pace.waitMs(SENDER, "busy") === 0) pace.take(SENDER, "busy");
  expect(pace.waitMs(SENDER, "quiet")).toBeLessThan(2 * 12.5 + 1);
});

describe("a number for which the provider fails", () => {
  /**
   * Sends as fast as it may for a time, to a provider that answers after 100 ms; returns the times of the calls
   * (virtual ms).
   */
  async function hammer(pace: NumberPace, clock: VirtualClock, forMs: number, works = false) {
    const untilMs = clock.monotonicMs() + forMs;
    const calls: number[] = [];
    while (clock.monotonicMs() < untilMs) {
      const waitMs = pace.waitMs(SENDER, "acme");
      if (waitMs > 0) {
        await clock.advance(Math.ceil(Math.min(waitMs, untilMs - clock.monotonicMs())));
        continue;
      }
      const sentAtMs = pace.take(SENDER, "acme");
      calls.push(sentAtMs);
      clock.setTimer(100, () => void (works ? pace.judged(SENDER) : pace.failed(SENDER, sentAtMs)));
    }
    return calls;
  }

  test("is called less and less: what was under way at first, then one message at a time, half a minute apart in the end", async () => {
    const clock = new VirtualClock();
    const pace = new NumberPace(clock, LONGEST_WAITS);
    const calls = await hammer(pace, clock, 5 * 60_000);
    expect(calls.filter((atMs) => atMs < 200).length).toBeLessThan(20);
    expect(calls.filter((atMs) => atMs > 60_000 && atMs <= 120_000).length).toBeLessThan(4);
    expect(calls.length).toBeLessThan(40);
    expect(pace.waitMs(OTHER, "globex")).toBe(0);
  });

  test("sends at its usual rate once one message has passed", async () => {
    const clock = new VirtualClock();
    const pace = new NumberPace(clock, LONGEST_WAITS);
    await hammer(pace, clock, 60_000);
    await hammer(pace, clock, 31_000, true);
    expect((await hammer(pace, clock, 1_000, true)).length).toBeWithin(79, 82);
  });

  test("is tried again even if the message that was to find out never ends", async () => {
    const clock = new VirtualClock();
    const pace = new NumberPace(clock, LONGEST_WAITS);
    for (let i = 0; i < 3; i += 1) pace.failed(SENDER, pace.take(SENDER, "acme"));
    await clock.advance(chatLimits.chatFailingPause.firstMs);
    expect(pace.waitMs(SENDER, "acme")).toBe(0);
    pace.take(SENDER, "acme");
    expect(pace.waitMs(SENDER, "acme")).toBeGreaterThan(0);
    await clock.advance(chatLimits.chatProbeMsMax);
    expect(pace.waitMs(SENDER, "acme")).toBe(0);
  });
});
