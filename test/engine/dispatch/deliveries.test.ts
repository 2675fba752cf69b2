import { expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Channel } from "../../../src/domain/channels/channel.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { OwnerQueue, Settlement } from "../../../src/domain/jobs/queue.ts";
import { Deliveries } from "../../../src/engine/dispatch/deliveries.ts";
import type { LeaseTerm } from "../../../src/engine/leases/lease-term.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { aTenant } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const LOAN_MS = 64_000;
const JOB: QueuedJob = {
  jobId: "01890a5d-ac96-774b-bcce-b302099a8057",
  tenantId: "acme",
  channel: "wallet",
  entryId: "1-0",
  attempts: 0,
  recipient: "pass",
  suppressed: null,
  payload: "{}",
};

test("a lent job's pending give-back ends with the loan and frees its slot", async () => {
  const clock = new VirtualClock();
  const settled: Settlement[] = [];
  let tries = 0;
  const channel: Channel = {
    name: "wallet",
    slots: 1,
    deliver: async () => ({ kind: "failed", error: "refused" }),
    giveBack: async () => {
      tries += 1;
      throw new UnavailableError("the registry is away");
    },
  };
  const land = async (_: unknown, settlements: readonly Settlement[]) => {
    settled.push(...settlements);
    return "settled" as const;
  };
  const queue: Pick<OwnerQueue, "settle" | "settleLent"> = {
    settle: land,
    settleLent: async (lease, settlements) => void (await land(lease, settlements)),
  };
  const never = new AbortController().signal;
  const term: LeaseTerm = {
    lease: { shard: 0, role: "dispatcher", token: "1-a" },
    shard: 0,
    closing: never,
    lost: never,
    isSurelyHeld: () => true,
    whenSurelyHeld: async () => true,
  };
  const ports = {
    channels: new Map([["wallet", channel]] as const),
    slots: new Map(),
    random: new SeededRandom(1),
    clock,
    fallbacks: { turn: async () => ({ kind: "send" }) as const },
  };
  const deliveries = new Deliveries(
    // Deliveries make only these two calls.
    { ...ports, queue: queue as OwnerQueue, telemetry: new QuietTelemetry(), notes: { landed() {}, retried() {} } },
    term,
    { onLanded: () => {}, onFenced: () => {}, shardTimeMs: () => null },
  );
  let freed = 0;
  const starter = {
    delivered: () => (freed += 1),
    hold: () => {},
    mayGoOn: () => true,
    isThrottled: () => false,
    askLater: () => {},
  };
  void deliveries.start(starter, { job: JOB, tenant: aTenant(), unit: null, slot: null, isOld: false });
  await turn();
  await clock.advance(1_000);
  expect(tries).toBeGreaterThan(0);
  void deliveries.lend(LOAN_MS);
  await clock.advance(LOAN_MS + engineLimits.giveBackRetry.maxMs);
  expect(freed).toBe(1);
  const triesByThen = tries;
  await clock.advance(LOAN_MS);
  expect(tries).toBe(triesByThen);
  await deliveries.over();
  expect(settled.some(({ kind }) => kind === "final")).toBe(false);
});
