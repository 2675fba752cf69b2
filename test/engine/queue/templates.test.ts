import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Observation } from "../../../src/domain/jobs/queue.ts";
import { accept, failed, first, pullOne, queue, record, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

/** All characters that JSON escapes, and others on which a line or a pattern could stumble. */
const NAMES = ["welcome", 'a "quoted\\" / 名 % é one', "\u2028", ""];

async function pulled(at: Awaited<ReturnType<typeof world>>, after: string | null = null): Promise<QueuedJob> {
  return first(await pullOne(at.lease, "acme", after));
}

test("a job's template reaches the event store, over a retry and whatever the outcome", async () => {
  for (const template of NAMES) {
    for (const ending of [sent, failed]) {
      const at = await world();
      await accept(at.tenant, { template, needsScreening: true });
      const job = await pulled(at);
      expect(job).toMatchObject({ template, recipient: "ann@example.com", needsScreening: true });
      await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
      const again = await pulled(at);
      expect(again).toMatchObject({ template, attempts: 1 });
      await queue.settle(at.lease, [ending(again)]);
      expect((await record(at.recorder, null))?.rows.map(({ finished }) => finished?.template)).toEqual([template]);
    }
  }
});

test("a report that ends a waiting job brings its template along", async () => {
  for (const template of NAMES) {
    const at = await world();
    const jobId = await accept(at.tenant, { template, payload: '{"html":"\\t\\"x\\""}' });
    await queue.settle(at.lease, [{ kind: "retry", job: await pulled(at), delayMs: 60_000, status: "running" }]);
    const report = {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
    } as const;
    expect(await queue.observe(at.tenant, report satisfies Observation)).toBe("recorded");
    const rows = (await record(at.recorder, null))?.rows ?? [];
    expect(rows.map(({ type, finished }) => [type, finished?.template])).toEqual([
      ["sent", template],
      ["delivered", undefined],
    ]);
  }
});

test("a suppressed recipient is recognised beside a template", async () => {
  const at = await world();
  await redis.client.hset(`${at.prefix}:suppressed:acme`, "ann@example.com", "bounced");
  await accept(at.tenant, { template: "welcome" });
  expect(await pulled(at)).toMatchObject({ suppressed: "bounced", template: "welcome" });
});

test("entries of an earlier release, without templates, are read as jobs without one", async () => {
  const at = await world();
  const jobId = await accept(at.tenant, { recipient: "böb with space@example.com" });
  const [, fields] = first(await redis.client.xrange(`${at.prefix}:box:acme/e`, "-", "+"));
  expect(fields[1]).toBe(`${jobId} e0 böb with space@example.com\n{"to":"ann@example.com"}`);
  const job = await pulled(at);
  expect(job).toMatchObject({ recipient: "böb with space@example.com", payload: '{"to":"ann@example.com"}' });
  expect(job).not.toHaveProperty("template");
  await queue.settle(at.lease, [sent(job)]);
  const row = first((await record(at.recorder, null))?.rows ?? []);
  expect(row.finished).toEqual({ status: "success", attempts: 1, result: {}, recipient: job.recipient });
});
