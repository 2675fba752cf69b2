import { describe, expect, test } from "bun:test";
import { JobIds } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { limits } from "../../../src/domain/limits.ts";
import { decideRetry } from "../../../src/engine/dispatch/retry-policy.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const clock = new VirtualClock();
const random = new SeededRandom(7);

function job(attempts: number, waits?: number): QueuedJob {
  return {
    jobId: new JobIds(clock, random).next(),
    tenantId: "acme",
    channel: "email",
    entryId: "1-0",
    attempts,
    ...(waits !== undefined && { waits }),
    recipient: "ann@example.com",
    suppressed: null,
    payload: "{}",
  };
}

const HOUR_MS = 60 * 60 * 1000;

/** A job of this age, spent mostly in its tenant queue, or not. */
function oldJob(ageMs: number, counts: { readonly attempts?: number; readonly waits?: number }): QueuedJob {
  const then = new VirtualClock(clock.nowMs() - ageMs);
  return { ...job(0), jobId: new JobIds(then, random).next(), ...counts };
}

function delayMs(attempts: number, afterMs?: number): number {
  const outcome = { kind: "retry", why: "busy", ...(afterMs === undefined ? {} : { afterMs }) } as const;
  const decision = decideRetry(job(attempts), outcome, clock, random);
  if (decision.kind === "give_up") throw new Error(decision.error);
  return decision.delayMs;
}

test("waits grow exponentially, with full jitter, up to fifteen minutes", () => {
  for (let attempts = 0; attempts < 11; attempts += 1) {
    const ceiling = Math.min(900_000, 1000 * 2 ** attempts);
    const delays = Array.from({ length: 200 }, () => delayMs(attempts));
    expect(Math.max(...delays)).toBeLessThanOrEqual(ceiling);
    expect(Math.max(...delays)).toBeGreaterThan(ceiling * 0.8);
    expect(Math.min(...delays)).toBeLessThan(ceiling * 0.2);
  }
});

test("never waits less than the provider asked", () => {
  expect(delayMs(0, 30_000)).toBe(30_000);
});

test("gives up after the last attempt, and says why it failed", () => {
  const decision = decideRetry(job(limits.attemptsMax - 1), { kind: "retry", why: "451 busy" }, clock, random);
  expect(decision).toEqual({ kind: "give_up", error: "gave up after 12 attempts: 451 busy" });
});

test("gives up earlier when an outcome allows fewer attempts", () => {
  const unanswered = { kind: "retry", why: "no answer", attemptsMax: 3 } as const;
  const kinds = [0, 1, 2].map((attempts) => decideRetry(job(attempts), unanswered, clock, random).kind);
  expect(kinds).toEqual(["wait", "wait", "give_up"]);
});

test("gives up when the next attempt would come after a day of waiting", () => {
  const outcome = { kind: "retry", why: "busy", afterMs: engineLimits.retryWaitedMsMax + 1 } as const;
  expect(decideRetry(job(0), outcome, clock, random)).toEqual({
    kind: "give_up",
    error: "gave up after 1 attempt: busy",
  });
});

test("a job that waited in its tenant queue for days still has all its attempts", () => {
  const deferred = { kind: "retry", why: "451 try later" } as const;
  for (let attempts = 0; attempts < limits.attemptsMax - 1; attempts += 1) {
    expect(decideRetry(oldJob(200 * HOUR_MS, { attempts }), deferred, clock, random).kind).toBe("wait");
  }
  const last = oldJob(200 * HOUR_MS, { attempts: limits.attemptsMax - 1 });
  expect(decideRetry(last, deferred, clock, random).kind).toBe("give_up");
});

test("a job that waited in its tenant queue for days still waits for its provider, but not for ever", () => {
  const paced = { kind: "retry", why: "its turn has not come", afterMs: 30_000, isUncounted: true } as const;
  expect(decideRetry(oldJob(200 * HOUR_MS, { waits: 100 }), paced, clock, random).kind).toBe("wait");
  expect(decideRetry(oldJob(200 * HOUR_MS, { waits: 3_000 }), paced, clock, random).kind).toBe("give_up");
  const long = { ...paced, afterMs: 6 * HOUR_MS };
  expect(decideRetry(oldJob(200 * HOUR_MS, { waits: 2 }), long, clock, random).kind).toBe("wait");
  expect(decideRetry(oldJob(200 * HOUR_MS, { waits: 4 }), long, clock, random).kind).toBe("give_up");
});

test("many short waits do not age a young job", () => {
  const paced = { kind: "retry", why: "its turn has not come", afterMs: 30_000, isUncounted: true } as const;
  expect(decideRetry(oldJob(HOUR_MS, { waits: 5_000 }), paced, clock, random).kind).toBe("wait");
});

describe("snoozes", () => {
  const wait = { kind: "retry", why: "too fast", isUncounted: true } as const;

  test("last as long as requested, however many there were", () => {
    for (const waits of [0, 5, 1_000]) {
      const decision = decideRetry(job(3, waits), { ...wait, afterMs: 6_000 }, clock, random);
      expect(decision).toEqual({ kind: "wait", delayMs: 6_000 });
    }
  });

  test("grow with their number when no duration is requested", () => {
    const longest = (waits: number) =>
      Math.max(
        ...Array.from({ length: 200 }, () => {
          const decision = decideRetry(job(0, waits), wait, clock, random);
          return decision.kind === "wait" ? decision.delayMs : Number.POSITIVE_INFINITY;
        }),
      );
    expect(longest(0)).toBeLessThanOrEqual(1_000);
    expect(longest(6)).toBeGreaterThan(32_000);
    expect(longest(500)).toBeLessThanOrEqual(engineLimits.jobRetry.maxMs);
  });

  test("neither use up attempts nor lengthen the waits between them", () => {
    expect(decideRetry(job(limits.attemptsMax, 50), wait, clock, random).kind).toBe("wait");
    const busy = { kind: "retry", why: "busy" } as const;
    const decision = decideRetry(job(1, 500), busy, clock, random);
    expect(decision.kind === "wait" && decision.delayMs).toBeLessThanOrEqual(2_000);
    expect(decideRetry(job(limits.attemptsMax - 1, 500), busy, clock, random)).toEqual({
      kind: "give_up",
      error: "gave up after 12 attempts: busy",
    });
  });
});
