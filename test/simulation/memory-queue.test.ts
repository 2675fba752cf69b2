import { expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { QueueState } from "./memory-queue-state.ts";

const ACME = { tenantId: "acme", shard: 0 };
const ACME_MAIL = { tenantId: "acme", channel: "email" } as const;

function world() {
  const clock = new VirtualClock();
  const random = new SeededRandom(1);
  const state = new QueueState(clock, random);
  const ids = new JobIds(clock, random);
  const accept = () => {
    const job = {
      jobId: ids.next(),
      channel: "email",
      recipient: "ann@a.test",
      payload: "{}",
      idempotency: null,
    } as const;
    state.acceptNow(ACME, 1_000, job);
    return job.jobId;
  };
  const acquire = () => {
    const lease = state.acquireNow(0, "dispatcher", "test", state.leasesNow("dispatcher", 1)[0] ?? null);
    if (lease === null) throw new Error("the lease is taken");
    return lease;
  };
  const pull = (lease = acquire()) =>
    state.pullNow(lease, {
      tenantQueues: [{ tenantQueue: ACME_MAIL, after: null, entriesMax: 9, bytesMax: 1_000_000 }],
      survey: true,
      bytesMax: 1_000_000,
      shardTimeMs: null,
      confirmedSkewMs: null,
    });
  return { state, accept, acquire, pull };
}

test("restoring a snapshot forgets everything after it, however often", () => {
  const { state, accept, pull } = world();
  const kept = accept();
  const snapshot = state.snapshot();
  for (let again = 0; again < 2; again += 1) {
    const lost = accept();
    expect(pull()).toMatchObject({ tenantQueues: [{ jobs: [{ jobId: kept }, { jobId: lost }] }] });
    expect(state.jobNow(ACME, kept)?.status).toBe("running");
    state.restore(snapshot);
    expect(state.jobNow(ACME, kept)?.status).toBe("pending");
    expect(state.jobNow(ACME, lost)).toBeNull();
  }
  expect(pull()).toMatchObject({ tenantQueues: [{ jobs: [{ jobId: kept }] }] });
});

test("a forgotten lease is not mistaken for the one that replaced it", () => {
  const { state, acquire } = world();
  const snapshot = state.snapshot();
  const forgotten = acquire();
  state.restore(snapshot);
  expect(state.renewNow(forgotten)).toBe(false);
  expect(acquire().token).not.toBe(forgotten.token);
  expect(state.renewNow(forgotten)).toBe(false);
});
