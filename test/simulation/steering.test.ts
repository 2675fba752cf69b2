import { describe, expect, test } from "bun:test";
import { engineLimits } from "../../src/engine/limits.ts";
import { aTenant } from "../support/tenants.ts";
import { Story } from "./story.ts";

/** Until an actor that rests has looked again, and its messages are handed over. */
const AT_ONCE_MS = 2 * engineLimits.pausedLookMs;
const HOLD_MS = 5 * 60_000;

const isSent = (story: Story) => (jobId: string) => story.outcomeFor(jobId).status === "success";

describe("a paused tenant", () => {
  test("sends nothing but what was in flight, while its neighbours go on, and goes on at once", () => {
    const story = new Story();
    story.plotDelay("acme", 2_000);
    const first = story.acceptMany(100);
    story.until("some are in flight", () => story.world.provider.callsInFlight > 10);
    const inFlight = story.world.provider.callsInFlight;
    story.world.operator.pause("acme");
    const later = story.acceptMany(50);
    story.advance(60_000);
    expect(first.filter(isSent(story))).toHaveLength(inFlight);
    expect(later.filter(isSent(story))).toEqual([]);
    expect(story.measureWait(story.accept("bolt"))).toBeLessThan(500);

    story.world.operator.resume("acme");
    story.plotDelay("acme", 1);
    story.advance(AT_ONCE_MS);
    expect([...first, ...later].filter(isSent(story))).toHaveLength(150);
    expect(first.map((jobId) => story.countAttempts(jobId)).every((attempts) => attempts === 1)).toBe(true);
    story.end();
  });

  test("costs no pulls, also with retries that fall due meanwhile", () => {
    const story = new Story();
    story.plotProvider(...Array.from({ length: 20 }, () => "is busy" as const));
    const jobs = story.acceptMany(20);
    story.until("all wait for a retry", () => jobs.every((jobId) => story.isParked(jobId)));
    const attempts = jobs.map((jobId) => story.countAttempts(jobId));
    story.world.operator.pause("acme");
    story.advance(60_000);
    expect(jobs.some((jobId) => story.isParked(jobId))).toBe(false);
    // Checks for new work on the shard go on without reading jobs.
    let read = 0;
    const { queueChecker } = story.world;
    const asked = queueChecker.asked.bind(queueChecker);
    queueChecker.asked = (process, request) => {
      read += request.tenantQueues.length;
      asked(process, request);
    };
    story.advance(60_000);
    expect(read).toBe(0);
    expect(jobs.map((jobId) => story.countAttempts(jobId))).toEqual(attempts);
    story.world.operator.resume("acme");
    story.advance(AT_ONCE_MS);
    expect(jobs.every(isSent(story))).toBe(true);
    story.end();
  });

  test("does not lose messages whose relay is away for longer than they are held", () => {
    const plan = { ...aTenant().plan, holdMs: HOLD_MS };
    const story = new Story({
      tenants: [aTenant({ tenantId: "acme", plan })],
      relays: new Map([["acme", "relay-of-acme"]]),
    });
    story.trouble("acme", "away", 5 * HOLD_MS);
    const jobs = story.acceptMany(3);
    story.advance(10_000);
    story.world.operator.pause("acme");
    story.advance(2 * HOLD_MS);
    story.world.operator.resume("acme");
    story.advance(HOLD_MS / 2);
    expect(jobs.map((jobId) => story.outcomeFor(jobId).status)).toEqual(jobs.map(() => "running"));
    story.until("their hold is over", () => jobs.every((id) => story.outcomeFor(id).status === "failed"), HOLD_MS);
  });

  test("stays paused when its shard changes hands", () => {
    const story = new Story({ processes: 2 });
    story.world.operator.pause("acme");
    const jobs = story.acceptMany(5);
    story.advance(1_000);
    story.crash(story.findOwner());
    story.advance(60_000);
    expect(jobs.filter(isSent(story))).toEqual([]);
    story.world.operator.resume("acme");
    story.advance(AT_ONCE_MS);
    expect(jobs.every(isSent(story))).toBe(true);
    story.end();
  });
});

describe("a purge", () => {
  for (const isPaused of [false, true]) {
    test(`ends what waits and nothing that is in flight, nor what comes later, ${isPaused ? "paused" : "not paused"}`, () => {
      const story = new Story();
      story.plotDelay("acme", 2_000);
      const jobs = story.acceptMany(400);
      story.until("some are in flight", () => story.world.provider.callsInFlight > 10);
      const inFlight = story.world.provider.callsInFlight;
      if (isPaused) story.world.operator.pause("acme");
      story.world.operator.purge("acme");
      story.advance(10);
      const later = story.acceptMany(10);
      story.plotDelay("acme", 1);
      story.until("all have ended", () =>
        jobs.every(
          (jobId) => story.outcomeFor(jobId).status !== "running" && story.outcomeFor(jobId).status !== "pending",
        ),
      );
      expect(jobs.filter(isSent(story))).toHaveLength(inFlight);
      story.advance(5_000);
      expect(later.filter(isSent(story))).toHaveLength(isPaused ? 0 : 10);
      story.world.operator.resume("acme");
      story.advance(AT_ONCE_MS);
      expect(later.every(isSent(story))).toBe(true);
      story.end();
    });
  }

  test("of a tenant that is paused already ends its jobs, once", () => {
    const story = new Story();
    story.world.operator.pause("acme");
    const jobs = story.acceptMany(300);
    story.advance(2_000);
    const isFailed = (jobId: string) => story.outcomeFor(jobId).status === "failed";
    for (const part of [jobs, null]) {
      const ending = part ?? story.acceptMany(5);
      story.advance(100);
      story.world.operator.purge("acme");
      story.advance(10);
      const kept = story.accept();
      story.until("they have ended", () => ending.every(isFailed));
      story.advance(5_000);
      expect(story.outcomeFor(kept).status).not.toBe("failed");
    }
    expect(story.world.provider.taken).toBe(0);
    story.world.operator.resume("acme");
    story.end();
  });
});
