import { describe, expect, test } from "bun:test";
import { aTenant } from "../support/tenants.ts";
import type { Mishap } from "./network.ts";
import { Story } from "./story.ts";

/** In the first week of its warm-up when the story begins. */
const emailSender = { fromAddress: "a@new.test", fromName: null, smtpUrl: null, warmUpFrom: "2026-01-12" };
const PER_DAY = 50;

/** Long enough for all that may go out today, with every fault on its way. */
const LATER_MS = 180_000;

function aStory(processes = 1): Story {
  return new Story({ processes, tenants: [aTenant({ tenantId: "acme", emailSender }), aTenant({ tenantId: "bolt" })] });
}

const isSent = (story: Story) => (jobId: string) => story.outcomeFor(jobId).status === "success";

describe("a new sender address sends no more than its day allows", () => {
  test("when its owner dies again and again", () => {
    const story = aStory(2);
    const jobs = story.acceptMany(120);
    for (const mark of [5, 12, 30]) {
      story.until("some more are sent", () => story.world.provider.taken >= mark);
      story.crash(story.findOwner());
    }
    story.advance(LATER_MS);
    expect(story.world.provider.taken).toBeLessThanOrEqual(PER_DAY);
    // Its deliveries in flight at each death are handed over again, and counted twice.
    expect(story.world.provider.taken).toBeGreaterThan(30);
    expect(jobs.filter(isSent(story)).length).toBeGreaterThan(20);
  });

  test("and sends all of it, although the queue's answers are lost or late", () => {
    const story = aStory();
    const mishaps: Mishap[] = [
      "lost reply",
      "lost request",
      { lateMs: 1 },
      "lost reply",
      { lateMs: 400 },
      "lost request",
    ];
    story.plotCalls("allow", ...mishaps, null, null, ...mishaps);
    const jobs = story.acceptMany(80);
    story.advance(LATER_MS);
    expect(story.world.provider.taken).toBe(PER_DAY);
    expect(jobs.filter(isSent(story)).length).toBe(PER_DAY);
  });

  test("when a shard moves to a joining process and back", () => {
    const story = aStory(2);
    const jobs = story.acceptMany(80);
    story.until("some are sent", () => story.world.provider.taken >= 20);
    story.world.drain(story.findOwner());
    story.advance(LATER_MS);
    expect(story.world.provider.taken).toBeLessThanOrEqual(PER_DAY);
    // A unit that is at hand when a term ends is lost.
    expect(story.world.provider.taken).toBeGreaterThanOrEqual(PER_DAY - 2);
    expect(jobs.filter(isSent(story)).length).toBe(story.world.provider.taken);
  });
});
