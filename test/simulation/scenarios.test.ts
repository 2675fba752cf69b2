import { describe, expect, test } from "bun:test";
import type { BatchResult } from "../../src/domain/jobs/batch.ts";
import { limits } from "../../src/domain/limits.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { RETRY_STORIES } from "./retry-stories.ts";
import { Story } from "./story.ts";

/*
 * Stories of one fault each, on the simulator and under all of its checkers. Where one is told of a mistake that was found
 * in the engine, it fails without the correction.
 */

const ONCE = { status: "success", handOvers: 1, eventStore: ["sent"] } as const;
const TWICE = { status: "success", handOvers: 2, eventStore: ["sent"] } as const;
const LEASE_MS = limits.leaseTtlMs;

describe("a batch under a key", () => {
  const bodies = Array.from({ length: 9 }, (_, i) => ({ to_address: `reader${i}@example.com`, html: "<p>Hello</p>" }));

  test("whose process died between two pieces is finished by its repeat, also when the records of its jobs are gone", () => {
    const story = new Story({ processes: 2, waitsForLeave: true });
    const request = { tenant: story.tenant("acme"), bodies, idempotencyKey: "batch" };
    const pieces = story.plotCalls("accept piece");
    const [first, second] = [story.house(0), story.house(1)];
    first.process.enter(() => void first.sendBatch(request), "answer");
    story.until("a piece is queued and another on its way", () => pieces.count === 2);
    story.crash(0);
    const queued = story.jobIds();
    expect(queued.length).toBeGreaterThan(0);
    expect(queued.length).toBeLessThan(bodies.length);
    const isGone = () => queued.every((jobId) => !story.isInQueue(jobId));
    story.until("its jobs have left the queue", isGone, 20 * 60_000);

    let result: BatchResult | null = null;
    second.process.enter(() => void second.sendBatch(request).then((answer) => (result = answer)), "answer");
    story.until("the repeat is answered", () => result !== null);
    story.end();
    expect(result).toMatchObject({
      kind: "answered",
      isReplay: false,
      outcomes: story.jobIds().map((jobId) => ({ jobId })),
    });
    expect(story.jobIds().map((jobId) => story.outcomeFor(jobId))).toEqual(bodies.map(() => ONCE));
  });
});

describe("nothing that was accepted is lost", () => {
  test("when a process dies during a delivery, another takes over and hands the message over again", () => {
    const story = new Story({ processes: 2 });
    story.plotProvider("takes silently");
    const jobId = story.accept();
    story.until("the provider has it", () => story.outcomeFor(jobId).handOvers === 1);
    story.crash(story.findOwner());
    const diedAtMs = story.nowMs;
    story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
    expect(story.nowMs - diedAtMs).toBeLessThan(limits.takeoverMsMax + 5_000);
    story.end();
    expect(story.outcomeFor(jobId)).toEqual(TWICE);
  });

  test("when the queue restarts under load, accepted jobs are not handed over again", () => {
    const story = new Story();
    const jobs = story.acceptMany(60);
    story.until("some are delivered", () => story.world.provider.taken > 10);
    story.world.setQueueUp(false);
    story.advance(5_000);
    story.world.setQueueUp(true);
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });

  test("when a pull takes effect after its owner asked again, the jobs that it named are still found", () => {
    const story = new Story();
    story.loseHints();
    const pulls = story.plotCalls("pull", { lateMs: 150 });
    story.until("the owner has asked again", () => pulls.count === 2);
    story.advance(20);
    const jobId = story.accept();
    story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
    story.end();
    expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });

  test("when the queue forgets a retry that its owner settles again, the job is not lost between its attempts", () => {
    const story = new Story();
    story.plotProvider("is busy", "is busy");
    const jobId = story.accept();
    story.until("its first attempt is settled", () => story.isParked(jobId));
    const snapshot = story.world.state.snapshot();
    const settles = story.plotCalls("settle", "lost request");
    story.until("its second attempt is over", () => settles.count === 1);
    story.world.forgetSince(snapshot);
    story.end();
    expect(story.outcomeFor(jobId)).toMatchObject({ status: "success", eventStore: ["sent"] });
  });

  test("when the queue's clock is set back behind a lost answer, jobs that come then are found", () => {
    const story = new Story();
    story.loseHints();
    story.plotCalls("settle", "lost reply", "lost request", "lost request", "lost request");
    const first = story.accept();
    story.until(
      "the first is settled, and its owner does not know",
      () => story.outcomeFor(first).status === "success",
    );
    story.world.stepQueueClock(-30_000);
    const second = story.accept();
    story.end();
    expect([story.outcomeFor(first), story.outcomeFor(second)]).toEqual([ONCE, ONCE]);
  });
});

describe("a message is handed over again only if that is unavoidable", () => {
  test("an outcome is written until it lands, however often the queue's reply is lost", () => {
    const story = new Story();
    story.plotCalls("settle", "lost reply", "lost request", "lost reply", "lost request", "lost reply");
    const jobId = story.accept();
    story.end();
    expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });

  test("an owner that lost its lease during a delivery does not overwrite its successor's outcome", () => {
    const story = new Story({ processes: 2 });
    story.plotProvider("takes silently");
    const jobId = story.accept();
    story.until("the provider has it", () => story.outcomeFor(jobId).handOvers === 1);
    story.house(story.findOwner()).process.pause(3 * LEASE_MS);
    story.until("the other has delivered it", () => story.outcomeFor(jobId).status === "success");
    story.advance(3 * LEASE_MS);
    story.end();
    expect(story.outcomeFor(jobId)).toEqual(TWICE);
  });

  test("a process that wakes from a long pause hands over none of the jobs that it held", () => {
    const story = new Story({ processes: 2, slots: 4, hasRelays: false });
    story.slow("acme", 500);
    const jobs = story.acceptMany(40);
    story.until("some are delivered", () => story.world.provider.taken > 6);
    story.house(story.findOwner()).process.pause(2 * LEASE_MS);
    story.advance(3 * LEASE_MS);
    story.end();
    const again = jobs.filter((jobId) => story.outcomeFor(jobId).handOvers > 1);
    // Its deliveries in flight when it fell asleep, and no more.
    expect(again.length).toBeLessThanOrEqual(4);
  });

  test("a stopping process finishes what it has begun, and its successor does the rest", () => {
    const story = new Story({ processes: 2 });
    story.slow("acme", 1_000);
    const jobs = story.acceptMany(50);
    story.until("some are delivered", () => story.world.provider.taken > 5);
    story.world.drain(story.findOwner());
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });

  test("a hanging delivery is broken off in time and tried again", () => {
    const story = new Story();
    story.plotProvider("hangs");
    const jobId = story.accept();
    story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
    expect(story.nowMs).toBeLessThan(limits.deliveryTimeoutMs + limits.abortGraceMs + 10_000);
    story.end();
    expect(story.outcomeFor(jobId)).toMatchObject({ status: "success", eventStore: ["sent"] });
  });

  test("an accept that reaches the queue after its own repeat queues nothing", () => {
    const story = new Story();
    story.plotCalls("accept", { lateMs: 3_000 });
    story.world.load.send(story.tenant("acme"), "ann@example.com");
    story.until("its client has read that it is accepted", () => story.world.load.acknowledgedCount === 1);
    story.advance(5_000);
    story.end();
    expect(story.jobIds().map((jobId) => story.outcomeFor(jobId))).toEqual([ONCE]);
  });
});

describe("a failed job that an operator retries", () => {
  for (const [name, tell] of Object.entries(RETRY_STORIES)) test(name, tell, 60_000);
});

describe("transient failures", () => {
  test("are retried at growing intervals, and given up after twelve attempts", () => {
    const story = new Story();
    story.plotProvider(...Array.from({ length: 20 }, () => "is busy" as const));
    const jobId = story.accept();
    story.until("it has failed", () => story.outcomeFor(jobId).status === "failed", 2 * 60 * 60_000);
    expect(story.countAttempts(jobId)).toBe(limits.attemptsMax);
    story.end();
    expect(story.outcomeFor(jobId)).toEqual({ status: "failed", handOvers: 0, eventStore: ["failed"] });
  }, 90_000);
});

describe("reports", () => {
  test("that come early, twice and out of order leave the status alone and become one event each, `sent` first", () => {
    const story = new Story();
    story.slow("acme", 1_000);
    const jobId = story.accept();
    story.until("it is being delivered", () => story.world.provider.callsInFlight === 1);
    for (const type of ["delivered", "opened", "delivered"] as const) story.report(jobId, type);
    story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
    for (const type of ["opened", "delivered"] as const) story.report(jobId, type);
    story.end();
    const { status, eventStore } = story.outcomeFor(jobId);
    expect([status, eventStore[0], eventStore.slice(1).toSorted()]).toEqual([
      "success",
      "sent",
      ["delivered", "opened"],
    ]);
  });

  test("that come after the job left the queue find it in the event store", () => {
    const story = new Story();
    const jobId = story.accept();
    const next = story.accept();
    story.advance(engineLimits.jobKeptMs + 60_000);
    expect(story.isInQueue(jobId)).toBe(false);
    story.report(jobId, "complained");
    story.end();
    expect(story.outcomeFor(jobId)).toEqual({ ...ONCE, eventStore: ["sent", "complained"] });
    expect(story.outcomeFor(next)).toEqual(ONCE);
  }, 90_000);

  test("of a bounce keep that tenant, and no other, from sending to its recipient again", () => {
    const story = new Story();
    const first = story.accept("acme", "gone@example.com");
    story.until("it is delivered", () => story.outcomeFor(first).status === "success");
    story.report(first, "bounced", "gone@example.com");
    story.advance(1_000);
    const [second, other] = [story.accept("acme", "gone@example.com"), story.accept("bolt", "gone@example.com")];
    story.end();
    expect(story.outcomeFor(second)).toEqual({ status: "suppressed", handOvers: 0, eventStore: ["suppressed"] });
    expect(story.outcomeFor(other)).toEqual(ONCE);
  });
});

describe("reports of a provider that repeats its calls until they are answered", () => {
  test("end a job whose own answer was lost, and it is not handed over again", () => {
    const story = new Story({ callsBack: true });
    story.plotProvider("takes silently");
    const jobId = story.accept();
    story.until("it waits for another try", () => story.isParked(jobId));
    story.report(jobId, "delivered");
    story.end();
    expect(story.outcomeFor(jobId)).toEqual({ ...ONCE, eventStore: ["sent", "delivered"] });
    expect(story.countAttempts(jobId)).toBe(1);
  });

  test("that come before the answer wait for it, and become one event per type, `sent` first", () => {
    const story = new Story({ callsBack: true });
    story.slow("acme", 2_000);
    const jobId = story.accept();
    story.until("it is being delivered", () => story.world.provider.callsInFlight === 1);
    for (const type of ["read", "sent", "delivered", "read"] as const) story.report(jobId, type);
    story.until("it is delivered", () => story.outcomeFor(jobId).status === "success");
    for (const type of ["sent", "read", "failed"] as const) story.report(jobId, type);
    story.end();
    const { status, eventStore } = story.outcomeFor(jobId);
    expect([status, eventStore[0], eventStore.slice(1).toSorted()]).toEqual([
      "success",
      "sent",
      ["delivered", "failed", "read"],
    ]);
  });

  test("keep a message from going out again after the process that handed it over died", () => {
    const story = new Story({ processes: 2, callsBack: true });
    story.slow("acme", 2_000);
    const jobId = story.accept();
    story.until("the provider has it", () => story.outcomeFor(jobId).handOvers === 1);
    story.crash(story.findOwner());
    story.report(jobId, "delivered");
    story.end();
    expect(story.outcomeFor(jobId)).toEqual({ ...ONCE, eventStore: ["sent", "delivered"] });
  });

  test("are taken in the end, even if the queue answers none of the first", () => {
    const story = new Story({ callsBack: true });
    const jobId = story.accept();
    story.plotCalls("observe", "lost request", "lost reply", "lost request");
    story.report(jobId, "delivered");
    story.end();
    expect(story.outcomeFor(jobId)).toEqual({ ...ONCE, eventStore: ["sent", "delivered"] });
  });
});

describe("each event is in the event store once", () => {
  test("when the event store has stored a batch and does not say so", () => {
    const story = new Story();
    story.plotCalls("insert", "lost reply", "lost reply", "lost reply");
    const jobId = story.accept();
    story.end();
    expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });

  test("when a recorder dies between the event store's answer and the queue's", () => {
    const story = new Story({ processes: 2 });
    const jobs = story.acceptMany(10);
    story.plotCalls("record", null, null, "lost request", "lost request", "lost request", "lost request");
    story.until("the event store has some of it", () => story.world.eventStore.size > 0);
    story.crash(0);
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });

  test("when an insert arrives long after its recorder gave it up", () => {
    const story = new Story();
    story.plotCalls("insert", { lateMs: 40_000 });
    const first = story.accept();
    story.advance(2_000);
    const second = story.accept();
    story.advance(60_000);
    story.end();
    expect([story.outcomeFor(first), story.outcomeFor(second)]).toEqual([ONCE, ONCE]);
  });

  test("when the event store is away for an hour while deliveries go on", () => {
    const story = new Story();
    story.world.eventStoreServer.isUp = false;
    const jobs = story.acceptMany(20);
    story.until("all are delivered", () => jobs.every((jobId) => story.outcomeFor(jobId).status === "success"));
    story.advance(60 * 60_000);
    expect(story.world.eventStore.size).toBe(0);
    story.world.eventStoreServer.isUp = true;
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  }, 90_000);
});

describe("no tenant waits for another", () => {
  test("a quiet tenant's message goes out at once beside a backlog whose provider hangs", () => {
    const story = new Story({ slots: 8, relays: new Map([["acme", "acme-relay"]]) });
    story.world.provider.plot = (truth) => (truth.tenant.tenantId === "acme" ? "hangs" : null);
    story.acceptMany(100, "acme");
    story.advance(5_000);
    const askedAtMs = story.nowMs;
    const quiet = story.accept("bolt");
    story.until("it is delivered", () => story.outcomeFor(quiet).status === "success");
    expect(story.nowMs - askedAtMs).toBeLessThan(500);
    story.world.provider.plot = () => null;
    story.end();
    expect(story.outcomeFor(quiet)).toEqual(ONCE);
  }, 90_000);
});

describe("memory is bounded by the work in flight", () => {
  test("a backlog of a thousand messages is read in pieces, and leaves nothing behind", () => {
    const story = new Story();
    const jobs = story.acceptMany(1_000);
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  }, 90_000);
});
