import { describe, expect, test } from "bun:test";
import { limits } from "../../src/domain/limits.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { CLOCK_STORIES } from "./clock-stories.ts";
import { QUEUE_LINES } from "./network.ts";
import { Story } from "./story.ts";

/* Stories of silence, half-open connections and clocks: no message is lost by them, and none goes out twice. */

const ONCE = { status: "success", handOvers: 1, eventStore: ["sent"] } as const;
const LEASE_MS = limits.leaseTtlMs;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

describe("a silence of the queue sends nothing twice", () => {
  for (const processes of [1, 2]) {
    test(`that lasts longer than a lease, with twenty messages in flight and ${processes} processes`, () => {
      const story = new Story({ processes, slots: 32 });
      story.slow("acme", 4_000);
      const jobs = story.acceptMany(20);
      story.until("all are in flight", () => story.world.provider.callsInFlight >= 15);
      const term = story.findTerm();
      story.world.network.silence(story.world.queueServer, null, 1.2 * LEASE_MS);
      story.advance(3 * LEASE_MS);
      expect(story.findTerm()).toBe(term);
      story.end();
      for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
    });
  }

  test("and nobody takes over from an owner whose silence all share, unless it dies", () => {
    const story = new Story({ processes: 2 });
    story.slow("acme", 2_000);
    const jobId = story.accept();
    story.until("the provider has it", () => story.outcomeFor(jobId).handOvers === 1);
    story.world.network.silence(story.world.queueServer, null, 2 * LEASE_MS);
    story.crash(story.findOwner());
    story.until("it is delivered again", () => story.outcomeFor(jobId).status === "success");
    expect(story.outcomeFor(jobId).handOvers).toBe(2);
    story.end();
  });
});

describe("a half-open connection", () => {
  for (const line of QUEUE_LINES) {
    test(`(${line}) delays its calls until it is replaced, and costs no lease`, () => {
      const story = new Story({ processes: 2 });
      const term = story.findTerm();
      for (const { process } of [story.house(0), story.house(1)]) {
        story.world.network.breakHalf(story.world.queueServer, process, { line, forMs: 7_000 });
      }
      const jobs = story.acceptMany(20);
      story.advance(16_000);
      for (const jobId of jobs) expect(story.outcomeFor(jobId)).toMatchObject({ status: "success", handOvers: 1 });
      expect(story.findTerm()).toBe(term);
      story.end();
    });
  }
});

describe("clocks", () => {
  for (const [name, tell] of Object.entries(CLOCK_STORIES)) test(name, tell, 60_000);

  test("a message named by an API whose clock is an hour, or a year, ahead is recorded once, is found, and leaves the queue", () => {
    for (const aheadMs of [HOUR_MS, YEAR_MS]) {
      const story = new Story();
      story.house(0).process.skewMs = aheadMs;
      const house = story.house(0);
      let jobId = "";
      const request = {
        tenant: story.tenant("acme"),
        body: { to_address: "ann@example.com", html: "<p>Hello</p>" },
        idempotencyKey: null,
        inMs: null,
        fallbackAfterMs: null,
      };
      void house.send(request).then((result) => {
        if (result?.kind === "accepted") jobId = result.jobId;
      });
      story.until("it is accepted", () => jobId !== "");
      story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
      story.report(jobId, "delivered");
      const next = story.accept();
      story.advance(engineLimits.jobKeptMs + 60_000);
      expect([story.isInQueue(jobId), story.isInQueue(next)]).toEqual([false, false]);
      story.end();
      expect(story.outcomeFor(jobId)).toEqual({ ...ONCE, eventStore: ["sent", "delivered"] });
    }
  }, 90_000);

  for (const byMs of [-HOUR_MS, HOUR_MS]) {
    test(`a step of the queue's clock by ${byMs / 60_000} minutes moves no retry`, () => {
      const story = new Story();
      story.plotProvider({ kind: "retry", why: "busy", afterMs: 30_000 });
      const jobId = story.accept();
      story.until("it waits for its next try", () => story.isParked(jobId));
      const parkedMs = story.nowMs;
      story.advance(5_000);
      story.world.stepQueueClock(byMs);
      story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
      expect(story.nowMs - parkedMs).toBeGreaterThanOrEqual(29_000);
      expect(story.nowMs - parkedMs).toBeLessThan(33_000);
      story.end();
      expect(story.outcomeFor(jobId)).toEqual(ONCE);
    });

    test(`and a step by ${byMs / 60_000} minutes ends no lease`, () => {
      const story = new Story({ processes: 2 });
      const term = story.findTerm();
      story.world.stepQueueClock(byMs);
      story.advance(3 * LEASE_MS);
      expect(story.findTerm()).toBe(term);
      story.end();
    });
  }
});
