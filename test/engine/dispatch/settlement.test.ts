import { expect, test } from "bun:test";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import { toSettlement } from "../../../src/engine/dispatch/settlement.ts";
import { Settler } from "../../../src/engine/dispatch/settler.ts";
import { eventually } from "../../support/eventually.ts";
import { LONGEST_WAITS } from "../../support/longest-waits.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const clock = new VirtualClock();
const random = new SeededRandom(7);

interface Told {
  readonly attempts?: number;
  readonly reportsNameReference?: boolean;
  readonly recipient?: string;
}

function settle(outcome: Exclude<Outcome, { kind: "away" }>, told: Told = {}) {
  const { attempts = 0, reportsNameReference = true, recipient = "34600000000" } = told;
  const jobId = new JobIds(clock, random).next();
  const of = { tenantId: "acme", entryId: "1-0", recipient, suppressed: null, payload: "{}" } as const;
  const job: QueuedJob = { ...of, jobId, channel: "whatsapp", attempts };
  return toSettlement({ job, outcome, wasStarted: true, reportsNameReference }, clock, random);
}

test("the provider's reference is passed on when reports name it, and kept nowhere else", () => {
  const delivered = { kind: "delivered", result: {}, providerRef: "wamid.1" } as const;
  expect(settle(delivered, { reportsNameReference: false })).not.toHaveProperty("providerRef");
  expect(settle(delivered)).toMatchObject({ status: "success", providerRef: "wamid.1" });
});

test("a try quotes a reply in one line, without the recipient however it is written", () => {
  const replies: readonly (readonly [recipient: string, reply: string, shown: string])[] = [
    ["ann@example.com", "250 2.0.0 Ok: queued as 4jWb", "250 2.0.0 Ok: queued as 4jWb"],
    ["ann@example.com", "550 <Ann@EXAMPLE.com> unknown", "550 <(recipient)> unknown"],
    ["ann@example.com", "550  5.1.1\r\n550\u200b\t<ann@example.com> ", "550 5.1.1 550 <(recipient)>"],
    ["ΣΟΣ@example.com", "550 <σος@example.com> unknown", "550 <(recipient)> unknown"],
    ["a+b.*@example.com", "550 A+B.*@example.com, aab@example.com", "550 (recipient), aab@example.com"],
    ["", " 250 ok ", "250 ok"],
    ["ann@example.com", "x".repeat(2_000), "x".repeat(300)],
  ];
  for (const [recipient, reply, shown] of replies) {
    const settled = settle({ kind: "delivered", result: {}, relay: "mx.example.org:25", reply }, { recipient });
    expect(settled).toMatchObject({ attempt: { relay: "mx.example.org:25", reply: shown } });
  }
});

test("a snooze is settled as one", () => {
  const busy = { kind: "retry", why: "busy" } as const;
  expect(settle({ ...busy, isUncounted: true })).toMatchObject({ kind: "retry", isUncounted: true });
  expect(settle(busy)).not.toHaveProperty("isUncounted");
});

test("a job given up without an answer says so, a refused one does not", () => {
  const gaveUp = settle({ kind: "retry", why: "no answer" }, { attempts: 11 });
  const result = { error: "gave up after 12 attempts: no answer" };
  expect(gaveUp).toMatchObject({ kind: "final", status: "failed", result, event: { type: "failed", result } });
  expect(gaveUp).toHaveProperty("isGivenUp", true);
  expect(settle({ kind: "failed", error: "refused" })).not.toHaveProperty("isGivenUp");
});

test("what could not be settled is repeated after a pause, which grows", async () => {
  const time = new VirtualClock();
  const telemetry = new QuietTelemetry();
  const sentAtMs: number[] = [];
  const landed: string[] = [];
  const send = async () => {
    sentAtMs.push(time.nowMs());
    if (sentAtMs.length < 5) throw new UnavailableError("away");
    return "settled" as const;
  };
  const settler = new Settler({
    send,
    clock: time,
    random: LONGEST_WAITS,
    telemetry,
    onLanded: (settlements) => landed.push(...settlements.map(({ job }) => job.jobId)),
    onFenced: () => {},
  });
  const settlement = settle({ kind: "failed", error: "refused" });
  settler.submit(settlement);
  await eventually("it has failed once", () => telemetry.lines.length > 0);
  await eventually("it has landed", async () => {
    await time.advance(50);
    return landed.length > 0;
  });
  const pauses = sentAtMs.slice(1).map((atMs, at) => atMs - (sentAtMs[at] ?? 0));
  expect(pauses).toEqual([50, 100, 200, 400]);
  expect(landed).toEqual([settlement.job.jobId]);
});
