import { expect, test } from "bun:test";
import { JobIds } from "../../../src/domain/ids.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import {
  accept,
  first,
  jobIds,
  passShardTime,
  pullOne,
  queue,
  record,
  redis,
  sent,
  stepClock,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

const DAY_MS = 24 * 60 * 60 * 1000;

function idMadeAt(ms: number): string {
  return new JobIds({ ...systemClock, nowMs: () => ms }, systemRandom).next();
}

async function recordAll(recorder: Awaited<ReturnType<typeof world>>["recorder"]): Promise<void> {
  for (let batch = await record(recorder, null); batch !== null; ) batch = await record(recorder, batch);
}

test("a finished job leaves some time after its last event is recorded, an unfinished one never", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  const jobId = await accept(tenant);
  const unfinished = await accept(tenant);
  await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
  await recordAll(recorder);
  await passShardTime(prefix, engineLimits.jobKeptMs - 60_000);
  await record(recorder, null);
  expect((await queue.job(tenant, jobId))?.status).toBe("success");
  await queue.observe(tenant, { jobId, type: "delivered", result: {}, suppress: null, known: null });
  await passShardTime(prefix, 70_000);
  // Its last event is in no event store yet.
  await record(recorder, null);
  expect((await queue.job(tenant, jobId))?.status).toBe("success");
  await recordAll(recorder);
  await passShardTime(prefix, engineLimits.jobKeptMs);
  await record(recorder, null);
  expect(await queue.job(tenant, jobId)).toBeNull();
  expect((await queue.job(tenant, unfinished))?.status).toBe("running");
  expect(await redis.client.exists(`${prefix}:leaving`)).toBe(0);
});

test("a job id from a future year delays neither other jobs nor its own leaving", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  const ids = [await accept(tenant, { jobId: idMadeAt(Date.now() + 365 * DAY_MS) }), await accept(tenant)];
  await queue.settle(lease, (await pullOne(lease, "acme")).map(sent));
  await recordAll(recorder);
  await passShardTime(prefix, engineLimits.jobKeptMs);
  await record(recorder, null);
  for (const id of ids) expect(await queue.job(tenant, id)).toBeNull();
  expect(await redis.client.keys(`${prefix}:jobs:*`)).toEqual([]);
});

test("jobs noted while the clock was a year ahead leave once it is right again", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  const jobId = await accept(tenant);
  await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
  await passShardTime(prefix, 365 * DAY_MS);
  await recordAll(recorder);
  await redis.client.del(`${prefix}:skew`);
  await record(recorder, null);
  expect(await queue.job(tenant, jobId)).toBeNull();
});

test("finished jobs leave as fast as they come, and a backlog shrinks on calls that record nothing", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  const count = 4 * engineLimits.leaveJobsMin;
  const ids = Array.from({ length: count }, () => jobIds.next());
  await Promise.all(ids.map((jobId) => accept(tenant, { jobId })));
  for (let settled = 0; settled < count; ) {
    const jobs = await pullOne(lease, "acme");
    await queue.settle(lease, jobs.map(sent));
    settled += jobs.length;
  }
  await recordAll(recorder);
  await passShardTime(prefix, engineLimits.jobKeptMs);
  let calls = 0;
  while ((await redis.client.exists(`${prefix}:leaving`)) === 1 && calls < 10) {
    await record(recorder, null);
    calls += 1;
  }
  expect(calls).toBe(4);
  expect(await redis.client.keys(`${prefix}:jobs:*`)).toEqual([]);
});

test("a step of Redis' clock makes no job leave early", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  const jobId = await accept(tenant);
  await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
  await recordAll(recorder);
  await stepClock(prefix, 2 * engineLimits.jobKeptMs);
  await record(recorder, null);
  expect((await queue.job(tenant, jobId))?.status).toBe("success");
});

test("a job that came back from the event store leaves again", async () => {
  const { tenant, recorder, prefix } = await world();
  const jobId = idMadeAt(Date.now() - DAY_MS);
  const events = [{ eventId: 5, type: "sent", result: {} }] as const;
  const of = { jobId, tenantId: "acme", channel: "email", status: "success", attempts: 1, result: {} } as const;
  const known: JobRecord = { ...of, events };
  const opened = { jobId, type: "opened", result: {}, suppress: null, known } as const;
  expect(await queue.observe(tenant, opened)).toBe("recorded");
  await passShardTime(prefix, engineLimits.jobKeptMs);
  await record(recorder, null);
  expect(await queue.job(tenant, jobId)).not.toBeNull();
  await recordAll(recorder);
  await passShardTime(prefix, engineLimits.jobKeptMs);
  await record(recorder, null);
  expect(await queue.job(tenant, jobId)).toBeNull();
});
