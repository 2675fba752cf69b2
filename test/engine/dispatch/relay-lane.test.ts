import { expect, test } from "bun:test";
import type { Channel } from "../../../src/domain/channels/channel.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { ChannelSlots } from "../../../src/engine/dispatch/channel-slots.ts";
import { FairScheduler } from "../../../src/engine/dispatch/fair-scheduler.ts";
import { PROMPT_MS, RelayLane, type Slot, type Waiter } from "../../../src/engine/dispatch/relay-lane.ts";
import { SlotTime } from "../../../src/engine/dispatch/slot-time.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { aTenant } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const JOB: QueuedJob = {
  jobId: "job-1",
  tenantId: "acme",
  channel: "email",
  entryId: "1-0",
  attempts: 0,
  recipient: "ada@example.com",
  suppressed: null,
  payload: "{}",
};

function aWaiter(): Waiter {
  return {
    next: undefined,
    waitingJobs: 0,
    time: new SlotTime(),
    isReady: () => false,
    startNext: () => {},
    contend: () => {},
    prefer: () => {},
    reviewHeld: () => {},
  };
}

/** A lane whose relay has just answered promptly. */
function aPromptLane({ connections = 48 } = {}) {
  const clock = new VirtualClock();
  const [prompt, patient, probes] = [48, 2_048, 1_024].map((slots) => new FairScheduler(slots, clock));
  if (prompt === undefined || patient === undefined || probes === undefined) throw new Error("three pools");
  const lane = new RelayLane(
    { key: "smtp://mta", name: "mta:25", isOwn: false },
    {
      prompt,
      patient,
      probes,
      unprovenSlots: 256,
      promptSlots: new Set<Slot>(),
      relayConnections: connections,
      clock,
      random: new SeededRandom(1),
      onOpened: () => {},
      onClosed: () => {},
      onStarted: () => {},
    },
  );
  const waiter = aWaiter();
  const first = lane.begin(waiter, false);
  lane.handOver(first);
  lane.judge(first, "answer", JOB);
  lane.end(first);
  return { lane, waiter, clock };
}

test("time before the hand-over does not count against the relay", async () => {
  const { lane, waiter, clock } = aPromptLane();
  const slot = lane.begin(waiter, true);
  // It is being looked up, or its content fetched, for so long that its slot goes to others.
  await clock.advance(3 * PROMPT_MS);
  lane.moveToPatience(slot);
  expect([slot.kind, lane.takesPromptly(waiter)]).toEqual(["patient", true]);
  lane.handOver(slot);
  await clock.advance(PROMPT_MS / 2);
  lane.judge(slot, "answer", JOB);
  expect(lane.takesPromptly(waiter)).toBeTrue();
});

test("a relay that holds a message for long is not prompt, before and after it answers", async () => {
  for (const isSwept of [true, false]) {
    const { lane, waiter, clock } = aPromptLane();
    const slot = lane.begin(waiter, true);
    lane.handOver(slot);
    await clock.advance(PROMPT_MS);
    if (isSwept) lane.moveToPatience(slot);
    else lane.judge(slot, "answer", JOB);
    expect(lane.takesPromptly(waiter)).toBeFalse();
  }
});

test("a prompt relay gets no more deliveries than connections, the last quarter for tenants without any", () => {
  const { lane, waiter } = aPromptLane({ connections: 8 });
  const busy = aWaiter();
  const slots = Array.from({ length: 4 }, () => lane.begin(busy, true));
  expect([lane.takesPromptly(busy), lane.takesPromptly(waiter)]).toEqual([false, true]);
  for (let i = 0; i < 4; i += 1) slots.push(lane.begin(aWaiter(), true));
  expect(lane.takesPromptly(waiter)).toBeFalse();
  for (const slot of slots.slice(-3)) lane.end(slot);
  expect(lane.takesPromptly(waiter)).toBeTrue();
});

test("a relay with a delivery in flight is not forgotten, however many others are used", () => {
  const channel = {
    name: "email",
    slots: 1,
    findRelay: ({ tenantId }) => ({ key: tenantId, name: tenantId, isOwn: true }),
    deliver: async () => ({ kind: "delivered", result: {} }) as const,
  } satisfies Channel;
  const random = new SeededRandom(1);
  const slots = new ChannelSlots({ channel, clock: new VirtualClock(), random, telemetry: new QuietTelemetry() });
  const findLane = (tenantId: string) => slots.getLane(aTenant({ tenantId }));
  const [busy, idle] = [findLane("busy"), findLane("idle")];
  busy?.begin(aWaiter(), true);
  for (let i = 0; i < 4_096; i += 1) findLane(`t-${i}`);
  expect(findLane("busy")).toBe(busy);
  expect(findLane("idle")).not.toBe(idle);
});

test("a job whose relay was reported away counts an attempt only where the relay has answered others, three times", () => {
  const channel = {
    name: "email",
    slots: 1,
    findRelay: () => ({ key: "smtp://mta", name: "mta:25", isOwn: false }),
    deliver: async () => ({ kind: "delivered", result: {} }) as const,
  } satisfies Channel;
  const random = new SeededRandom(1);
  const slots = new ChannelSlots({ channel, clock: new VirtualClock(), random, telemetry: new QuietTelemetry() });
  const lane = slots.getLane(aTenant());
  if (lane === null) throw new Error("there is no lane");
  const answerAnother = () => {
    const slot = lane.begin(aWaiter(), false);
    lane.handOver(slot);
    lane.judge(slot, "answer", { ...JOB, jobId: "job-2" });
    lane.end(slot);
  };
  // However often: no other tenant was answered.
  expect(Array.from({ length: 9 }, () => slots.placeOfAway(lane, JOB))).toEqual(Array(9).fill("wait"));
  const places = Array.from({ length: 3 }, () => {
    answerAnother();
    return slots.placeOfAway(lane, JOB);
  });
  expect(places).toEqual(["wait", "wait", "count"]);
});
