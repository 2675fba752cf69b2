import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { judgeRelay, RelayBreaker } from "../../../src/engine/dispatch/relay-breaker.ts";
import { SeededRandom } from "../../support/seeded-random.ts";

let made = 0;

function aJob(recipient = `ann@d${made}.test`): QueuedJob {
  made += 1;
  const rest = { channel: "email", attempts: 0, suppressed: null, payload: "{}" } as const;
  return { jobId: `job-${made}`, tenantId: "acme", entryId: `${made}-0`, recipient, ...rest };
}

test("three strikes without an answer in between open the breaker, an answer in between does not", () => {
  const breaker = new RelayBreaker();
  for (let i = 0; i < 20; i += 1) {
    breaker.judge("away", aJob(), false);
    breaker.judge("silence", aJob(), false);
    breaker.judge("nothing", aJob(), false);
    breaker.judge("answer", aJob(), false);
  }
  expect(breaker.isClosed).toBe(true);
  expect([0, 1, 2].map(() => breaker.judge("away", aJob(), false))).toEqual([null, null, "opened"]);
  expect(breaker.judge("away", aJob(), false)).toBeNull();
  expect(breaker.judge("answer", aJob(), false)).toBe("closed");
});

test("repeated silence on one message or one recipient domain counts as one strike, eight messages are enough", () => {
  const breaker = new RelayBreaker();
  const job = aJob("a@down.test");
  for (let i = 0; i < 20; i += 1) expect(breaker.judge("silence", job, false)).toBeNull();
  for (let i = 0; i < 6; i += 1) expect(breaker.judge("silence", aJob("b@down.test"), false)).toBeNull();
  expect(breaker.hasStruck(aJob("c@down.test"))).toBe(true);
  expect(breaker.hasStruck(aJob("c@up.test"))).toBe(false);
  expect(breaker.judge("silence", aJob("d@down.test"), false)).toBe("opened");
  expect(breaker.isOnlySilent).toBe(true);
});

test("one probe runs at a time, each failed one doubles the wait up to half a minute, and one without a verdict does not", () => {
  const breaker = new RelayBreaker();
  const random = new SeededRandom(1);
  for (let i = 0; i < 3; i += 1) breaker.judge("away", aJob(), false);
  expect(breaker.mayProbe).toBe(false);
  const waits: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    waits.push(breaker.untilProbeMs(random));
    breaker.halfOpen();
    expect(breaker.mayProbe).toBe(true);
    breaker.beginProbe();
    expect(breaker.mayProbe).toBe(false);
    breaker.judge("away", aJob(), true);
    breaker.endProbe();
    expect(breaker.mayProbe).toBe(false);
  }
  for (const [i, waitMs] of waits.entries()) {
    const longestMs = Math.min(1_000 * 2 ** i, 30_000);
    expect(waitMs).toBeLessThanOrEqual(longestMs);
    expect(waitMs).toBeGreaterThanOrEqual(0.75 * longestMs);
  }
  breaker.halfOpen();
  breaker.beginProbe();
  breaker.endProbe();
  expect(breaker.untilProbeMs(random)).toBeLessThanOrEqual(30_000);
  expect([breaker.isClosed, breaker.mayProbe]).toEqual([false, false]);
});

test("a delivery that never reached the relay, or that we broke off, does not count", () => {
  const retry = { kind: "retry", why: "", relay: "mx.test" } as const;
  expect(judgeRelay({ ...retry, isUncounted: true }, false)).toBe("nothing");
  expect(judgeRelay(retry, true)).toBe("nothing");
  expect(judgeRelay(retry, false)).toBe("answer");
  expect(judgeRelay({ ...retry, isSilence: true }, true)).toBe("silence");
  expect(judgeRelay({ kind: "failed", error: "550", relay: "mx.test" }, false)).toBe("answer");
  expect(judgeRelay({ kind: "delivered", result: {} }, false)).toBe("answer");
  expect(judgeRelay({ kind: "away", why: "" }, false)).toBe("away");
});

test("a message that fails, or is put off, before its relay is asked says nothing about the relay", () => {
  const failed = judgeRelay({ kind: "failed", error: "the template is gone" }, false);
  expect(failed).toBe("unasked");
  expect(judgeRelay({ kind: "retry", why: "its pass could not be made" }, false)).toBe("unasked");
  expect(judgeRelay({ kind: "retry", why: "too fast", isUncounted: true }, false)).toBe("unasked");
  const breaker = new RelayBreaker();
  for (let i = 0; i < 3; i += 1) breaker.judge("away", aJob(), false);
  breaker.halfOpen();
  breaker.beginProbe();
  expect(breaker.judge(failed, aJob(), true)).toBeNull();
  breaker.endProbe();
  expect(breaker.isClosed).toBe(false);
});
