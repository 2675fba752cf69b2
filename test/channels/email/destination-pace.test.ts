import { describe, expect, test } from "bun:test";
import {
  type DestinationAnswer,
  DestinationPace,
  type Passage,
} from "../../../src/channels/email/smtp/destination-pace.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

function aPace() {
  const clock = new VirtualClock();
  const pace = new DestinationPace(clock);
  /** Sends one message that is answered at once, and returns how long it has to wait, or 0. */
  const send = (answer: DestinationAnswer, name = "big.test"): number => {
    const entry = pace.enter(name);
    if (entry.kind === "wait") return entry.afterMs;
    entry.passage.ended(answer);
    return 0;
  };
  const sendMany = (count: number, answer: DestinationAnswer, name?: string) => {
    for (let i = 0; i < count; i += 1) send(answer, name);
  };
  /** The most that may be in flight at one time. */
  const open = (name = "big.test"): Passage[] => {
    const passages: Passage[] = [];
    for (;;) {
      const entry = pace.enter(name);
      if (entry.kind === "wait" || passages.length === 100) return passages;
      passages.push(entry.passage);
    }
  };
  /** Releases all messages that may go, and returns their number. */
  const atOnce = (name?: string) => {
    const passages = open(name);
    for (const passage of passages) passage.ended("other");
    return passages.length;
  };
  return { clock, pace, send, sendMany, open, atOnce };
}

describe("a destination", () => {
  test("that never deferred mail is not limited", () => {
    const { atOnce, sendMany, pace } = aPace();
    sendMany(50, "accepted");
    expect(atOnce()).toBe(100);
    expect(pace.size).toBe(0);
  });

  test("that defers a few messages is not slowed", () => {
    const { sendMany, atOnce } = aPace();
    // Six greylisted messages, refused twice and then accepted.
    sendMany(12, "refused");
    sendMany(6, "accepted");
    expect(atOnce()).toBe(100);
  });

  test("that refuses now and then is never slowed", async () => {
    const { clock, send, atOnce } = aPace();
    for (let i = 0; i < 1_000; i += 1) {
      send(i % 6 === 0 ? "refused" : "accepted");
      await clock.advance(10);
    }
    expect(atOnce()).toBe(100);
    for (let i = 0; i < 40; i += 1) {
      send("refused");
      await clock.advance(10_000);
    }
    expect(atOnce()).toBe(100);
  });

  test("that keeps refusing gets fewer messages at once, then one at a time, ever farther apart", async () => {
    const { clock, send, sendMany, atOnce } = aPace();
    sendMany(16, "refused");
    const steps: number[] = [];
    for (let i = 0; i < 4; i += 1) {
      steps.push(atOnce());
      await clock.advance(1_000);
      send("refused");
    }
    expect(steps).toEqual([8, 4, 2, 1]);
    const spacings: number[] = [];
    for (let i = 0; i < 9; i += 1) {
      const waitedMs = send("refused");
      spacings.push(waitedMs);
      // A message that had to wait has left; the next one may go when it is due.
      await clock.advance(waitedMs);
      expect(send("refused")).toBe(0);
    }
    expect(spacings).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256].map((seconds) => seconds * 1000));
  });

  test("becomes slower by one step, however many messages were in flight when it refused", () => {
    const { sendMany, open, atOnce } = aPace();
    sendMany(16, "refused");
    for (const passage of open()) passage.ended("refused");
    expect(atOnce()).toBe(4);
  });

  test("is not slowed further by messages that left before it was slowed", () => {
    const { open, atOnce } = aPace();
    for (const passage of open()) passage.ended("refused");
    expect(atOnce()).toBe(8);
  });

  test("becomes faster as it accepts messages, and is then forgotten", async () => {
    const { clock, pace, send, sendMany, atOnce } = aPace();
    sendMany(16, "refused");
    for (let i = 0; i < 8; i += 1) {
      await clock.advance(300_000);
      send("refused");
    }
    let accepted = 0;
    while (pace.size > 0 && accepted < 200) {
      const waitedMs = send("accepted");
      if (waitedMs === 0) accepted += 1;
      await clock.advance(Math.max(1, waitedMs));
    }
    // Five spaced steps of three, and four steps of ten.
    expect(accepted).toBe(5 * 3 + 4 * 10);
    expect(atOnce()).toBe(100);
  });

  test("slows neither another destination nor another sender's mail to itself", () => {
    const { sendMany, atOnce } = aPace();
    sendMany(17, "refused", "acme big.test");
    expect(atOnce("acme big.test")).toBe(4);
    expect(atOnce("acme small.test")).toBe(100);
    expect(atOnce("bolt big.test")).toBe(100);
  });

  test("is forgotten when it has not refused for an hour", async () => {
    const { clock, sendMany, atOnce } = aPace();
    sendMany(16, "refused");
    await clock.advance(60 * 60_000 + 1);
    expect(atOnce()).toBe(100);
  });
});

test("waiting messages come back one after another, none later than in five minutes", async () => {
  const { clock, sendMany, send } = aPace();
  sendMany(16, "refused");
  for (let i = 0; i < 6; i += 1) {
    await clock.advance(5_000);
    send("refused");
  }
  // One every four seconds.
  const waits = Array.from({ length: 200 }, () => send("other"));
  expect(waits.slice(0, 4)).toEqual([4_000, 8_000, 12_000, 16_000]);
  expect(Math.max(...waits)).toBe(300_000);
});

test("all waiting messages get their turn in about the time that the pace implies", async () => {
  const { clock, pace, sendMany, send } = aPace();
  sendMany(16, "refused");
  for (let i = 0; i < 6; i += 1) {
    await clock.advance(5_000);
    send("refused");
  }
  const startMs = clock.monotonicMs();
  let asked = 0;
  let left = 60;
  const come = () => {
    asked += 1;
    const entry = pace.enter("big.test");
    if (entry.kind === "wait") clock.setTimer(entry.afterMs, come);
    else {
      left -= 1;
      entry.passage.ended("other");
    }
  };
  for (let i = 0; i < 60; i += 1) come();
  while (left > 0) await clock.advance(1_000);
  expect(clock.monotonicMs() - startMs).toBeLessThanOrEqual(60 * 4_000 + 1_000);
  expect(asked).toBeLessThanOrEqual(2 * 60);
});

test("memory is bounded: those that refused longest ago are forgotten first", () => {
  const { pace, send, sendMany, atOnce } = aPace();
  sendMany(16, "refused", "first.test");
  for (let i = 0; i < 10_000; i += 1) send("refused", `d${i}.test`);
  expect(pace.size).toBe(10_000);
  expect(atOnce("first.test")).toBe(100);
});
