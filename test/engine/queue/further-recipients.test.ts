import { describe, expect, test } from "bun:test";
import type { Settlement } from "../../../src/domain/jobs/queue.ts";
import { accept, first, pullOne, queue, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

/* Events about recipients beside a job's own: their results begin with `recipient`. */

const bob = { recipient: "bob@example.com" };
const observation = { suppress: null, known: null };

describe("the end of a job", () => {
  test("brings the events about further recipients with it, once, after its own", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { tags: [{ name: "a", value: "b" }] });
    const job = first(await pullOne(lease, tenant.tenantId));
    const further = [
      { type: "suppressed", result: { ...bob, reason: "bounced" } },
      { type: "failed", result: { recipient: "cy@example.com", error: "550 no" } },
    ] as const;
    const settlement: Settlement = { ...sent(job), kind: "final", further } as Settlement;
    await queue.settle(lease, [settlement], null);
    await queue.settle(lease, [settlement], null);
    const record = await queue.job(tenant, jobId);
    expect(record?.status).toBe("success");
    expect(record?.events.map(({ type, result }) => ({ type, result }))).toEqual([
      { type: "sent", result: {} },
      ...further,
    ]);
  });

  test("does so for a job without tags, texts or result of its own", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { recipient: "" });
    const job = first(await pullOne(lease, tenant.tenantId));
    const further = [{ type: "failed", result: { ...bob, error: "550 no" } }] as const;
    await queue.settle(lease, [{ ...sent(job), further } as Settlement], null);
    expect((await queue.job(tenant, jobId))?.events.map(({ type }) => type)).toEqual(["sent", "failed"]);
  });
});

describe("later reports", () => {
  async function aSentJob() {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, tenant.tenantId)))], null);
    return { tenant, jobId };
  }

  test("count once for each recipient and type, however the rest of them reads", async () => {
    const { tenant, jobId } = await aSentJob();
    const observe = (result: object) =>
      queue.observe(tenant, { ...observation, jobId, type: "delivered", result: { ...result } });
    expect(await observe({})).toBe("recorded");
    expect(await observe(bob)).toBe("recorded");
    expect(await observe({ recipient: "cy@example.com" })).toBe("recorded");
    expect(await observe({ ...bob, at: "another" })).toBe("duplicate");
    expect(await observe({})).toBe("duplicate");
  });

  test("wait for the end of the job in the same way", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, tenant.tenantId));
    const observe = (result: object) =>
      queue.observe(tenant, { ...observation, jobId, type: "delivered", result: { ...result } });
    expect([await observe(bob), await observe({}), await observe(bob), await observe({})]).toEqual([
      "kept",
      "kept",
      "duplicate",
      "duplicate",
    ]);
    await queue.settle(lease, [sent(job)], null);
    expect((await queue.job(tenant, jobId))?.events.map(({ type, result }) => [type, result["recipient"]])).toEqual([
      ["sent", undefined],
      ["delivered", bob.recipient],
      ["delivered", undefined],
    ]);
  });

  test("are bounded for a job, whatever recipients they make up", async () => {
    const { tenant, jobId } = await aSentJob();
    const answers: string[] = [];
    for (let i = 0; i < 60; i += 1) {
      const result = { recipient: `made-up-${i}@example.com`, error: "x" };
      answers.push(await queue.observe(tenant, { ...observation, jobId, type: "failed", result }));
    }
    expect(answers.filter((answer) => answer === "recorded").length).toBeLessThanOrEqual(51);
    expect(answers.at(-1)).toBe("duplicate");
  });
});

test("suppressions are looked up as for a job's own recipient, one that was removed among them", async () => {
  const { tenant } = await world();
  await queue.putSuppression(tenant, "bob@example.com", "bounced");
  await queue.putSuppression(tenant, "cy@example.com", "manual");
  await queue.removeSuppression(tenant, "cy@example.com");
  const key = "k";
  await queue.putSuppression(tenant, "sha:", key);
  const erased = new Bun.CryptoHasher("sha1").update(`${key}dan@example.com`).digest("hex");
  await queue.putSuppression(tenant, `sha:${erased}`, "unsubscribed");
  const asked = ["ann@example.com", "bob@example.com", "cy@example.com", "dan@example.com"];
  const among = async (topic?: string) =>
    Object.fromEntries<object>(await queue.suppressedAmong(tenant, asked, { acceptedMs: Date.now(), topic }));
  const forAll = { "bob@example.com": { reason: "bounced" }, "dan@example.com": { reason: "unsubscribed" } };
  expect(await among()).toEqual(forAll);
  await queue.putSuppression(tenant, "ann@example.com\tnews", "unsubscribed");
  await queue.putSuppression(tenant, "bob@example.com\tnews", "manual");
  const cy = new Bun.CryptoHasher("sha1").update(`${key}cy@example.com`).digest("hex");
  await queue.putSuppression(tenant, `sha:${cy}\tnews`, "unsubscribed");
  const fromNews = { reason: "unsubscribed", topic: "news" } as const;
  expect(await among("news")).toEqual({ ...forAll, "ann@example.com": fromNews, "cy@example.com": fromNews });
  expect([await among("offers"), await among()]).toEqual([forAll, forAll]);
});

test("who was erased gets nothing more that was accepted before, and what is accepted later", async () => {
  const { tenant } = await world();
  const acceptedMs = Date.now();
  await queue.eraseJobs(tenant, "bob@example.com");
  const asked = ["ann@example.com", "bob@example.com"];
  expect([...(await queue.suppressedAmong(tenant, asked, { acceptedMs, topic: undefined }))]).toEqual([
    ["bob@example.com", { reason: "erased" }],
  ]);
  expect([...(await queue.suppressedAmong(tenant, asked, { acceptedMs: Date.now() + 60_000, topic: "news" }))]).toEqual(
    [],
  );
});
