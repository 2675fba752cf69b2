import { beforeEach, describe, expect, test } from "bun:test";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { JobRecord, JobStatus } from "../../../src/domain/jobs/job.ts";
import type { PayloadRef } from "../../../src/domain/jobs/payload-store.ts";
import { PayloadSweep } from "../../../src/engine/dispatch/payload-sweep.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { MemoryPayloads } from "../../http/support/memory-payloads.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const UNQUEUED_MS = 15 * 60_000;

class Knower {
  readonly jobs = new Map<string, JobRecord>();
  failure: Error | null = null;
  /** Jobs whose record cannot be read. */
  readonly unreadable = new Set<string>();
  /** Runs after the answer is made, and before it is returned. */
  meanwhile: () => Promise<void> = async () => {};

  put(jobId: string, status: JobStatus): void {
    this.jobs.set(jobId, { jobId, tenantId: "acme", channel: "email", status, attempts: 0, result: {}, events: [] });
  }

  async job(_tenant: unknown, jobId: string): Promise<JobRecord | null> {
    if (this.failure !== null) throw this.failure;
    if (this.unreadable.has(jobId)) throw new Error("no record");
    const answer = this.jobs.get(jobId) ?? null;
    await this.meanwhile();
    return answer;
  }
}

let clock: VirtualClock;
let payloads: MemoryPayloads;
let queue: Knower;
let eventStore: Knower;
let telemetry: QuietTelemetry;
let sweep: PayloadSweep;
let ids: JobIds;

beforeEach(() => {
  clock = new VirtualClock();
  payloads = new MemoryPayloads(clock);
  [queue, eventStore] = [new Knower(), new Knower()];
  telemetry = new QuietTelemetry();
  const directory = createDirectory([aTenant()]);
  sweep = new PayloadSweep({ payloads, directory, queue, eventStore, clock, random: systemRandom, telemetry });
  ids = new JobIds(clock, systemRandom);
});

async function put(tenantId = "acme"): Promise<string> {
  const jobId = ids.next();
  await payloads.put({ tenantId, jobId }, new Uint8Array(1));
  return jobId;
}

const left = async () => {
  await sweep.sweep();
  return Array.from(payloads.stored.keys(), (key) => key.split(" ")[1]);
};

describe("the payload of a job", () => {
  test.each(["pending", "running"] as const)("that is %s stays, however old it is", async (status) => {
    const jobId = await put();
    queue.put(jobId, status);
    await clock.advance(80 * 60 * UNQUEUED_MS);
    expect(await left()).toEqual([jobId]);
  });

  test("that failed stays until its job has left the queue: it is copied when the end is recorded", async () => {
    const jobId = await put();
    queue.put(jobId, "failed");
    await clock.advance(80 * 60 * UNQUEUED_MS);
    expect(await left()).toEqual([jobId]);
  });

  test.each(["success", "failed", "suppressed"] as const)("that ended with %s is removed", async (status) => {
    if (status !== "failed") queue.put(await put(), status);
    const recorded = await put();
    eventStore.put(recorded, status);
    await clock.advance(UNQUEUED_MS);
    expect(await left()).toEqual([]);
  });

  test("of an unknown job is removed once the job can no longer be queued, and not before", async () => {
    const jobId = await put();
    await clock.advance(UNQUEUED_MS - 1);
    expect(await left()).toEqual([jobId]);
    await clock.advance(1);
    expect(await left()).toEqual([]);
  });

  test("that is stored under an old id, as a repeated batch stores it, is as young as any other", async () => {
    const jobId = ids.next();
    await clock.advance(23 * 60 * 60_000);
    await payloads.put({ tenantId: "acme", jobId }, new Uint8Array(1));
    await clock.advance(UNQUEUED_MS - 1);
    expect(await left()).toEqual([jobId]);
    await clock.advance(1);
    expect(await left()).toEqual([]);
  });

  test.each(["unknown", "failed"] as const)(
    "that is stored anew and queued while its former job is found %s stays",
    async (found) => {
      const jobId = await put();
      if (found === "failed") eventStore.put(jobId, "failed");
      await clock.advance(UNQUEUED_MS);
      eventStore.meanwhile = async () => {
        await payloads.put({ tenantId: "acme", jobId }, new Uint8Array(1));
        queue.put(jobId, "pending");
      };
      expect(await left()).toEqual([jobId]);
    },
  );

  test("that failed stays, if it is a file, for as long as what it belongs to is kept for a retry", async () => {
    const kept = new Set<string>();
    let asked = 0;
    const keepsFailed = async ({ jobId }: PayloadRef) => {
      asked += 1;
      return kept.has(jobId);
    };
    const directory = createDirectory([aTenant()]);
    sweep = new PayloadSweep({
      payloads,
      directory,
      queue,
      eventStore,
      keepsFailed,
      gauge: "files",
      clock,
      random: systemRandom,
      telemetry,
    });
    const jobId = await put();
    eventStore.put(jobId, "failed");
    kept.add(jobId);
    await clock.advance(UNQUEUED_MS);
    expect(await left()).toEqual([jobId]);
    // The sweep does not ask the stores about it for the next hour.
    expect(await left()).toEqual([jobId]);
    expect(asked).toBe(1);
    kept.clear();
    await clock.advance(60 * 60_000);
    expect(await left()).toEqual([]);
  });

  test("of a deleted tenant is removed", async () => {
    await put("nobody");
    expect(await left()).toEqual([]);
  });

  test("stays if its job cannot be read, and holds up no other; few of those are logged", async () => {
    const unread = [await put(), await put(), await put(), await put(), await put(), await put()];
    const [inQueue, ...recorded] = unread;
    queue.unreadable.add(inQueue ?? "");
    for (const jobId of recorded) eventStore.unreadable.add(jobId);
    await put();
    await clock.advance(UNQUEUED_MS);
    expect(await left()).toEqual(unread);
    expect(telemetry.lines).toEqual(
      Array.from({ length: 5 }, () => "error: a large payload could not be judged, and stays"),
    );
  });

  test("stays while the queue or the event store does not answer, and is checked again", async () => {
    const jobId = await put();
    await clock.advance(UNQUEUED_MS);
    for (const knower of [queue, eventStore]) {
      knower.failure = new UnavailableError("away");
      expect(await left()).toEqual([jobId]);
      knower.failure = null;
    }
    expect(telemetry.lines).toEqual(Array.from({ length: 2 }, () => "warn: large payloads could not be swept"));
    expect(await left()).toEqual([]);
  });
});

test("sweeps repeat until they are stopped", async () => {
  sweep.start();
  const jobId = await put();
  queue.put(jobId, "running");
  await clock.advance(60_000);
  expect(payloads.stored.size).toBe(1);
  queue.put(jobId, "success");
  await eventually("it is removed", async () => {
    await clock.advance(60_000);
    return payloads.stored.size === 0;
  });
  await sweep.stop();
  await sweep.stop();
});
