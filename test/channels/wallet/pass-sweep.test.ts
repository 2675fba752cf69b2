import { afterAll, beforeAll, expect, test } from "bun:test";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { PassSweep } from "../../../src/channels/wallet/pass-sweep.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { JobRecord, JobStatus } from "../../../src/domain/jobs/job.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import type { OpenDatabase } from "../../../src/storage/postgres/database.ts";
import { migrate } from "../../../src/storage/postgres/migrate.ts";
import { eventually } from "../../support/eventually.ts";
import { temporaryPglite } from "../../support/made-home.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { openTestRegistry } from "../../tenants/open-test-registry.ts";

const SLOW_MS = 60_000;
let database: OpenDatabase;
let remove: () => Promise<void>;
let registry: OpenRegistry;
beforeAll(async () => {
  ({ database, remove } = await temporaryPglite());
  await migrate(database.db);
  registry = await openTestRegistry(database);
  await must(registry.registry.createTenant({ id: "acme", name: "Acme", tokens: 100 }));
}, SLOW_MS);
afterAll(async () => {
  await registry?.stop();
  await database?.close();
  await remove?.();
}, SLOW_MS);

function aJob(jobId: string, status: JobStatus): JobRecord {
  return { jobId, tenantId: "acme", channel: "wallet", status, attempts: 1, result: {}, events: [] };
}

async function store(name: string): Promise<void> {
  await registry.passes.create({
    passId: `pass-${name}`,
    tenantId: "acme",
    serial: name,
    content: { type: "google", kind: "generic", classId: "1.c", object: {} },
    passTypeId: null,
    authenticationToken: null,
    jobId: `job-${name}`,
    images: new Map(),
  });
}

const readState = async (name: string) => (await registry.passes.find("acme", `pass-${name}`))?.state;
const balance = async () => (await must(registry.registry.tenant("acme"))).tokens;

/** A sweep `laterMs` after now, where the queue and the event store know these jobs. */
function sweep(laterMs: number, queue: readonly JobRecord[], eventStore: readonly JobRecord[] = []) {
  const clock = new VirtualClock(Date.now() + laterMs);
  const knower = (jobs: readonly JobRecord[]) => ({
    isAway: false,
    unreadable: "",
    async job(_tenant: unknown, jobId: string): Promise<JobRecord | null> {
      if (this.isAway) throw new UnavailableError("away");
      if (jobId === this.unreadable) throw new Error("no record");
      return jobs.find((job) => job.jobId === jobId) ?? null;
    },
  });
  const stores = { queue: knower(queue), eventStore: knower(eventStore) };
  const { passes, directory } = registry;
  const swept = new PassSweep({
    passes,
    directory,
    ...stores,
    clock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  return { ...stores, swept, clock };
}

test("only passes whose job is unknown, failed or cancelled are undone, and their tokens and serials are free again", async () => {
  const names = ["unknown", "pending", "running", "failed", "canceled", "recorded", "done"];
  for (const name of names) await store(name);
  const before = await balance();
  const { swept } = sweep(
    walletLimits.passUnfinishedMs + 60_000,
    [
      aJob("job-pending", "pending"),
      aJob("job-running", "running"),
      aJob("job-done", "success"),
      aJob("job-canceled", "suppressed"),
    ],
    [aJob("job-failed", "failed"), aJob("job-recorded", "success")],
  );
  await swept.sweep();
  await swept.sweep();
  const states = await Promise.all(names.map(readState));
  // Passes whose jobs cannot be retried are gone.
  expect(states).toEqual([undefined, "creating", "creating", "failed", undefined, "ready", "ready"]);
  expect(await balance()).toBe(before + 3);
  await store("unknown-again");
});

test("a young pass is left alone: its job may be on its way", async () => {
  await store("young");
  await sweep(walletLimits.passUnfinishedMs - 60_000, []).swept.sweep();
  expect(await readState("young")).toBe("creating");
});

test.each(["queue", "eventStore"] as const)(
  "while the %s cannot be asked nothing is undone, and the next sweep does it",
  async (away) => {
    const name = `patient-${away}`;
    await store(name);
    const { swept, clock, ...stores } = sweep(walletLimits.passUnfinishedMs + 60_000, [
      aJob("job-pending", "pending"),
      aJob("job-running", "running"),
    ]);
    stores[away].isAway = true;
    await swept.sweep();
    expect(await readState(name)).toBe("creating");
    stores[away].isAway = false;
    swept.start();
    await eventually("it is undone", async () => {
      await clock.advance(walletLimits.passSweepMs);
      return (await readState(name)) === undefined;
    });
    await swept.stop();
  },
);

test("a pass whose job cannot be read is left alone, and holds up no other", async () => {
  for (const name of ["a-unread", "b-unknown"]) await store(name);
  const { queue, swept } = sweep(walletLimits.passUnfinishedMs + 60_000, [
    aJob("job-pending", "pending"),
    aJob("job-running", "running"),
  ]);
  queue.unreadable = "job-a-unread";
  await swept.sweep();
  expect([await readState("a-unread"), await readState("b-unknown")]).toEqual(["creating", undefined]);
});

test("a pass whose job waits for its time is not asked for until then, and for ten minutes at most", async () => {
  await store("scheduled");
  const { queue, swept, clock } = sweep(walletLimits.passUnfinishedMs + 60_000, []);
  let due = { ...aJob("job-scheduled", "pending"), dueMs: clock.nowMs() + 3 * 60_000 };
  let asked = 0;
  queue.job = async (_tenant, jobId) => {
    if (jobId !== due.jobId) return aJob(jobId, "running");
    asked += 1;
    return due;
  };
  await swept.sweep();
  await clock.advance(2 * 60_000);
  await swept.sweep();
  expect(asked).toBe(1);
  due = { ...due, dueMs: clock.nowMs() + 60 * 60_000 };
  await clock.advance(2 * 60_000);
  await swept.sweep();
  await clock.advance(9 * 60_000);
  await swept.sweep();
  expect(asked).toBe(2);
  due = { ...due, status: "suppressed" };
  await clock.advance(60_000);
  await swept.sweep();
  expect([asked, await readState("scheduled")]).toEqual([3, undefined]);
});

test("a pass that failed goes when the content of its job is gone, too", async () => {
  await store("given-up");
  await registry.passes.undoCreate("acme", "job-given-up");
  await sweep(walletLimits.failedPassKeptMs - 60_000, []).swept.sweep();
  expect(await readState("given-up")).toBe("failed");
  await sweep(walletLimits.failedPassKeptMs + 60_000, []).swept.sweep();
  expect(await readState("given-up")).toBeUndefined();
});
