import { assert } from "../../src/domain/errors.ts";
import { eventTimeMs } from "../../src/domain/jobs/event.ts";
import { limits } from "../../src/domain/limits.ts";
import { EPOCH_MS } from "./sim-process.ts";
import { Story } from "./story.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Sets the clocks of the queue and of all processes: those of one machine. */
function stepAll(story: Story, byMs: number): void {
  story.world.stepQueueClock(byMs);
  for (const place of story.world.places) if (place !== null) place.process.skewMs += byMs;
}

/** How far the date of the message's last event is ahead of the time. */
function aheadMs(story: Story, jobId: string): number {
  const tenant = story.tenant("acme");
  const events = story.world.state.jobNow(tenant, jobId)?.events ?? [];
  const last = events.at(-1);
  assert(last !== undefined, "it has an event");
  return eventTimeMs(last.eventId) - (EPOCH_MS + story.nowMs);
}

function deliver(story: Story): string {
  const jobId = story.accept();
  story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
  return jobId;
}

/** Accepted by a process, as a request is. */
function schedule(story: Story, inMs: number): string {
  let jobId = "";
  const body = { to_address: "ann@example.com", html: "<p>Hello</p>" };
  const tenant = story.tenant("acme");
  const request = { tenant, body, idempotencyKey: null, inMs, fallbackAfterMs: null };
  void story
    .house(0)
    .send(request)
    .then((result) => {
      if (result?.kind === "accepted") jobId = result.jobId;
    });
  story.until("it is accepted", () => jobId !== "");
  return jobId;
}

/** Each throws if it does not go as its name says. A planted mistake is told by the story that it spoils. */
export const CLOCK_STORIES = {
  "clocks that are days ahead for a minute date no event more than minutes ahead, then or later": () => {
    for (const step of [(story: Story, byMs: number) => story.world.stepQueueClock(byMs), stepAll]) {
      for (const byMs of [2 * DAY_MS, 430 * DAY_MS]) {
        const story = new Story();
        step(story, byMs);
        // Before its owner has pulled again.
        const first = deliver(story);
        story.advance(MINUTE_MS);
        const during = deliver(story);
        assert(aheadMs(story, first) <= limits.clocksApartMs, "an event right after the step is dated well");
        assert(aheadMs(story, during) <= limits.clocksApartMs, "an event of that minute is dated well");
        step(story, -byMs);
        const after = deliver(story);
        assert(aheadMs(story, after) <= limits.clocksApartMs, "a later event is dated well");
        story.end();
      }
    }
  },
  "a message is not sent hours early after a run with clocks in the past": () => {
    const story = new Story();
    const jobId = schedule(story, 15 * MINUTE_MS);
    stepAll(story, -3 * HOUR_MS);
    story.advance(MINUTE_MS);
    // Another start, and the clocks are right again.
    story.crash(0);
    story.world.stepQueueClock(3 * HOUR_MS);
    story.world.start(0);
    story.advance(5 * MINUTE_MS);
    // A later jump is noticed as any other.
    story.world.stepQueueClock(2 * HOUR_MS);
    assert(aheadMs(story, deliver(story)) <= limits.clocksApartMs, "an event after another step is dated well");
    story.world.stepQueueClock(-2 * HOUR_MS);
    story.advance(5 * MINUTE_MS);
    assert(story.outcomeFor(jobId).handOvers === 0, "it waits for its time");
    const waitedMs = story.measureWait(jobId, 6 * MINUTE_MS);
    assert(waitedMs > 2 * MINUTE_MS, "it is sent at its time");
    story.end();
  },
  "the queue's clock alone, minutes ahead when a shard changes hands, sends no scheduled message early": () => {
    const story = new Story();
    deliver(story);
    story.crash(0);
    story.world.stepQueueClock(3 * MINUTE_MS);
    story.world.start(0);
    deliver(story);
    const waitedMs = story.measureWait(schedule(story, 5 * MINUTE_MS), 7 * MINUTE_MS);
    assert(Math.abs(waitedMs - 5 * MINUTE_MS) < MINUTE_MS / 2, "it is sent at its time");
    story.end();
  },
  "a pull that was long on its way when its owner died makes nothing late for one that comes a minute later": () => {
    const story = new Story();
    const jobId = schedule(story, 3 * MINUTE_MS);
    const sinceMs = story.nowMs;
    const pulls = story.plotCalls("pull", { lateMs: 4_000 });
    story.until("a pull is on its way", () => pulls.count === 1);
    story.crash(0);
    // The next process cannot reach the queue before what that pull left unsaid is forgotten.
    story.world.network.silence(story.world.queueServer, null, MINUTE_MS);
    story.measureWait(jobId, 4 * MINUTE_MS);
    assert(Math.abs(story.nowMs - sinceMs - 3 * MINUTE_MS) < 2_000, "it is sent at its time");
    story.end();
  },
  "a process whose clock is days ahead, or behind, sends no scheduled message early, or late": () => {
    for (const byMs of [3 * DAY_MS, -3 * DAY_MS]) {
      const story = new Story();
      story.house(0).process.skewMs = byMs;
      const jobId = schedule(story, 8 * MINUTE_MS);
      const waitedMs = story.measureWait(jobId, 12 * MINUTE_MS);
      assert(Math.abs(waitedMs - 8 * MINUTE_MS) < MINUTE_MS, "it is sent at its time");
      story.end();
    }
  },
  "a message that is moved to a later time is sent then": () => {
    const story = new Story();
    const jobId = schedule(story, 2 * MINUTE_MS);
    void story.house(0).change(story.tenant("acme"), jobId, { inMs: 5 * MINUTE_MS });
    const waitedMs = story.measureWait(jobId, 7 * MINUTE_MS);
    assert(Math.abs(waitedMs - 5 * MINUTE_MS) < MINUTE_MS / 2, "it is sent at its new time");
    story.end();
  },
  "clocks that stay ahead, as after a sleep of the machine, are followed within a quarter of an hour": () => {
    const story = new Story();
    stepAll(story, 8 * HOUR_MS);
    story.advance(9 * MINUTE_MS);
    assert(
      aheadMs(story, deliver(story)) <= limits.clocksApartMs,
      "clocks that are ahead for a moment are not followed",
    );
    story.advance(6 * MINUTE_MS);
    assert(Math.abs(aheadMs(story, deliver(story)) - 8 * HOUR_MS) < MINUTE_MS, "events have the clocks' time");
    story.end();
  },
} as const;
