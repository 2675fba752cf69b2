import { expect, test } from "bun:test";
import { JobIds } from "../../../src/domain/ids.ts";
import { CHANNELS, type ChannelName, type QueuedJob } from "../../../src/domain/job.ts";
import type { Outcome } from "../../../src/domain/outcome.ts";
import { settlementOf } from "../../../src/engine/dispatch/settlement.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const clock = new VirtualClock();
const random = new SeededRandom(7);

function settle(channel: ChannelName, outcome: Exclude<Outcome, { kind: "away" }>, attempts = 0) {
  const jobId = new JobIds(clock, random).next();
  const of = { tenantId: "acme", entryId: "1-0", recipient: "34600000000", suppressed: null, payload: "{}" } as const;
  const job: QueuedJob = { ...of, jobId, channel, attempts };
  return settlementOf({ job, outcome, wasStarted: true }, clock, random);
}

test("the provider's reference is passed on where reports name it, and kept nowhere else", () => {
  const delivered = { kind: "delivered", result: {}, providerRef: "wamid.1" } as const;
  const passed = CHANNELS.filter((channel) => "providerRef" in settle(channel, delivered));
  expect(passed).toEqual(["whatsapp"]);
  expect(settle("whatsapp", delivered)).toMatchObject({ status: "success", providerRef: "wamid.1" });
});

test("a wait that costs no attempt is written down as one", () => {
  const busy = { kind: "retry", why: "busy" } as const;
  expect(settle("whatsapp", { ...busy, isUncounted: true })).toMatchObject({ kind: "retry", isUncounted: true });
  expect(settle("whatsapp", busy)).not.toHaveProperty("isUncounted");
});

test("what is given up without an answer says so, what was refused does not", () => {
  const gaveUp = settle("whatsapp", { kind: "retry", why: "no answer" }, 11);
  const result = { error: "gave up after 12 attempts: no answer" };
  expect(gaveUp).toMatchObject({ kind: "final", status: "failed", result, event: { type: "failed", result } });
  expect(gaveUp).toHaveProperty("isGivenUp", true);
  expect(settle("whatsapp", { kind: "failed", error: "refused" })).not.toHaveProperty("isGivenUp");
});
