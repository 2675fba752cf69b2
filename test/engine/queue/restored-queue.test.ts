import { expect, test } from "bun:test";
import { firstEventIdAt } from "../../../src/domain/jobs/event.ts";
import { countQueuedJobs, notSentBefore, prepareRestoredQueue } from "../../../src/engine/queue/restored-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { accept, type OneBatch, pullOne, queue, record, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const HOUR_MS = 3_600_000;
const options = () => ({
  address: { kind: "socket", path: redis.path } as const,
  clock: systemClock,
  telemetry: new QuietTelemetry(),
});

test("queued jobs are counted, of all tenants and shards, without those that have ended", async () => {
  const [acme, globex] = [await world("acme"), await world("globex")];
  expect(await countQueuedJobs(options())).toBe(0);
  for (let job = 0; job < 3; job += 1) await accept(acme.tenant);
  for (let job = 0; job < 2; job += 1) await accept(globex.tenant, { dueMs: Date.now() + HOUR_MS });
  expect(await countQueuedJobs(options())).toBe(5);
  const jobs = await pullOne(acme.lease, "acme");
  await queue.settle(acme.lease, jobs.slice(0, 1).map(sent), null);
  expect(await countQueuedJobs(options())).toBe(4);
});

test("after a restore every event comes behind those that may have been told before", async () => {
  const at = await world();
  const lastEventId = firstEventIdAt(Date.now() + HOUR_MS);
  let done: OneBatch | null = null;
  const eventIdNow = async () => {
    await accept(at.tenant);
    await queue.settle(at.lease, (await pullOne(at.lease, "acme")).map(sent), null);
    done = await record(at.recorder, done);
    return done?.rows.at(-1)?.eventId ?? 0;
  };
  expect(await eventIdNow()).toBeLessThan(lastEventId);
  await prepareRestoredQueue(options(), { cutMs: Date.now(), lastEventId, queued: "send" });
  expect(await notSentBefore(options())).toBeNull();
  const next = await eventIdNow();
  expect(next).toBeGreaterThan(lastEventId);
  // A repeat never sets a clock back.
  const cutMs = Date.now();
  await prepareRestoredQueue(options(), { cutMs, lastEventId: 0, queued: "fail" });
  expect(await eventIdNow()).toBeGreaterThan(next);
  expect(await notSentBefore(options())).toEqual({ acceptedMs: cutMs, dueMs: expect.any(Number) });
});
