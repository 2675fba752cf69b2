import { expect, test } from "bun:test";
import { IssuerPace, type Urgency } from "../../../src/channels/wallet/google/issuer-pace.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const CALLS_A_SECOND = walletLimits.googleCallsPerSecond;
const NEVER = new AbortController().signal;

interface Start {
  readonly atMs: number;
  readonly urgency: Urgency;
}

/** Starts `count` calls at once, and notes when they begin. */
function ask(pace: IssuerPace, clock: VirtualClock, urgency: Urgency, count: number): Start[] {
  const starts: Start[] = [];
  for (let n = 0; n < count; n++) {
    void pace.take(urgency, NEVER).then((may) => may && starts.push({ atMs: clock.monotonicMs(), urgency }));
  }
  return starts;
}

test("no second sees more calls than Google takes, however many are asked for", async () => {
  const clock = new VirtualClock();
  const pace = new IssuerPace(clock);
  const rounds: Start[][] = [];
  for (let round = 0; round < 40; round++) {
    rounds.push(ask(pace, clock, "job", 3));
    // A call that starts at once is noted before time passes.
    await clock.advance(0);
    await clock.advance(100);
  }
  await clock.advance(10_000);
  const all = rounds
    .flat()
    .map(({ atMs }) => atMs)
    .toSorted((a, b) => a - b);
  expect(all).toHaveLength(120);
  for (const [at, startMs] of all.entries()) {
    const later = all[at + CALLS_A_SECOND];
    if (later !== undefined) expect(later - startMs).toBeGreaterThanOrEqual(1_000);
  }
});

test("jobs and callers of the API take turns", async () => {
  const clock = new VirtualClock();
  const pace = new IssuerPace(clock);
  const jobs = ask(pace, clock, "job", walletLimits.googleJobsWaitingMax);
  const requests = ask(pace, clock, "request", 5);
  await clock.advance(600);
  expect(requests.length).toBe(5);
  expect(jobs.length).toBeGreaterThan(5);
});

test("a call that would wait too long is told when to come back", async () => {
  const clock = new VirtualClock();
  const pace = new IssuerPace(clock);
  ask(pace, clock, "job", walletLimits.googleJobsWaitingMax + 1);
  expect(await pace.take("job", NEVER)).toBe(false);
  expect(pace.waitMs).toBeGreaterThanOrEqual(walletLimits.googleJobsWaitingMax * (1_000 / CALLS_A_SECOND));
  await clock.advance(60_000);
  expect(await pace.take("job", NEVER)).toBe(true);
});

test("a cancelled call takes no turn", async () => {
  const clock = new VirtualClock();
  const pace = new IssuerPace(clock);
  const giving = new AbortController();
  ask(pace, clock, "job", 1);
  const given = pace.take("job", giving.signal);
  const patient = ask(pace, clock, "job", 1);
  giving.abort();
  expect(await given).toBe(false);
  expect(await pace.take("job", giving.signal)).toBe(false);
  await clock.advance(1_000 / CALLS_A_SECOND);
  expect(patient.length).toBe(1);
  await clock.advance(1_000);
  expect(pace.isIdle).toBe(true);
});
