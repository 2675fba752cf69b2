import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CHANNELS } from "../../src/app/channels.ts";
import { JobIds } from "../../src/domain/ids.ts";
import type { AcceptResult, FrontQueue, IdempotencyKeys, NewJob } from "../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { startRedis } from "../support/redis.ts";
import { FakeQueue } from "./support/fake-queue.ts";

interface Opened {
  readonly queue: FrontQueue & IdempotencyKeys;
  stop(): Promise<void>;
}

const jobIds = new JobIds(systemClock, systemRandom);
let tenants = 0;

function newTenant(): TenantRef {
  tenants += 1;
  return { tenantId: `tenant-${tenants}`, shard: 3 };
}

function newJob(changes: Partial<NewJob> = {}): NewJob {
  const payload = '{"to":"ann@example.com"}';
  return {
    jobId: jobIds.next(),
    channel: "email",
    recipient: "ann@example.com",
    payload,
    idempotency: null,
    ...changes,
  };
}

/** The guarantees that endpoints rely on, for the queue in Redis and for the one of the HTTP tests. */
function conformance(name: string, open: () => Promise<Opened>): void {
  describe(name, () => {
    let opened: Opened;
    let queue: Opened["queue"];
    beforeAll(async () => {
      opened = await open();
      ({ queue } = opened);
    }, 300_000);
    afterAll(() => opened?.stop(), 90_000);

    const kinds = (answers: readonly AcceptResult[]) => answers.map(({ kind }) => kind);

    test("reads and sends share the tenant's window, and no more than the plan allows get through", async () => {
      const tenant = newTenant();
      expect((await queue.admit(tenant, 3)).rate).toEqual({ limit: 3, remaining: 2, resetSeconds: 60 });
      const accepted = await queue.accept(tenant, 3, newJob());
      expect(accepted).toMatchObject({ kind: "accepted", rate: { limit: 3, remaining: 1 } });
      const counted = await queue.accept(tenant, null, newJob());
      expect(counted).toMatchObject({ kind: "accepted", rate: { limit: 0, remaining: 0, resetSeconds: 0 } });
      expect(await queue.admit(tenant, 3)).toMatchObject({ limited: false, rate: { remaining: 0 } });
      const refused = newJob();
      for (const answer of [await queue.admit(tenant, 3), await queue.accept(tenant, 3, refused)]) {
        expect(answer.rate).toMatchObject({ limit: 3, remaining: 0 });
        expect(answer.rate.resetSeconds).toBeWithin(1, 62);
        expect("limited" in answer ? answer.limited : answer.kind === "limited").toBe(true);
      }
      expect(await queue.job(tenant, refused.jobId)).toBeNull();
      expect((await queue.admit(newTenant(), 3)).limited).toBe(false);
    });

    test("a queued job is pending, and only its own tenant sees it", async () => {
      const [tenant, other, job] = [newTenant(), newTenant(), newJob({ channel: "whatsapp" })];
      expect(await queue.accept(tenant, 10, job)).toMatchObject({ kind: "accepted", jobId: job.jobId });
      expect(await queue.job(tenant, job.jobId)).toEqual({
        jobId: job.jobId,
        tenantId: tenant.tenantId,
        channel: "whatsapp",
        status: "pending",
        attempts: 0,
        result: null,
        events: [],
      });
      expect(await queue.job(other, job.jobId)).toBeNull();
      expect(await queue.job(tenant, jobIds.next())).toBeNull();
    });

    test("an idempotency key belongs to one tenant and one request", async () => {
      const [tenant, other] = [newTenant(), newTenant()];
      const idempotency = { key: "order 1", fingerprint: "aa" };
      const altered = { key: "order 1", fingerprint: "bb" };
      expect(await queue.queuedUnder(tenant, idempotency)).toBeNull();
      const [first, again, changed] = [
        newJob({ idempotency }),
        newJob({ idempotency }),
        newJob({ idempotency: altered }),
      ];
      expect(await queue.accept(tenant, 10, first)).toMatchObject({ kind: "accepted", jobId: first.jobId });
      expect(await queue.accept(tenant, 10, again)).toMatchObject({ kind: "replayed", jobId: first.jobId });
      expect((await queue.accept(tenant, 10, changed)).kind).toBe("conflict");
      for (const { jobId } of [again, changed]) expect(await queue.job(tenant, jobId)).toBeNull();
      expect(await queue.queuedUnder(tenant, idempotency)).toEqual({ jobId: first.jobId, isSame: true });
      expect(await queue.queuedUnder(tenant, altered)).toEqual({ jobId: first.jobId, isSame: false });
      expect(await queue.queuedUnder(other, idempotency)).toBeNull();
      expect((await queue.accept(other, 10, newJob({ idempotency }))).kind).toBe("accepted");
    });

    test("a tenant has at most its share of the queue, in jobs and in bytes; a refused key stays free", async () => {
      const [byJobs, byBytes] = [newTenant(), newTenant()];
      const one = { quota: { jobs: 1, bytes: 1_000 } };
      const idempotency = { key: "order 1", fingerprint: "aa" };
      expect(
        kinds([
          await queue.accept(byJobs, 10, newJob(one)),
          await queue.accept(byJobs, 10, newJob({ ...one, idempotency })),
          await queue.accept(byJobs, 10, newJob({ quota: { jobs: 2, bytes: 1_000 }, idempotency })),
        ]),
      ).toEqual(["accepted", "queue_full", "accepted"]);
      const room = { quota: { jobs: 9, bytes: 100 } };
      const stored = { sha256: "0f".repeat(32), bytes: 70 };
      expect(await queue.accept(byBytes, 10, newJob({ ...room, payload: "x".repeat(30) }))).toMatchObject({
        kind: "accepted",
      });
      expect(
        await queue.accept(byBytes, 10, newJob({ ...room, payload: "", stored: { ...stored, bytes: 71 } })),
      ).toMatchObject({ kind: "queue_full", what: "bytes" });
      expect((await queue.accept(byBytes, 10, newJob({ ...room, payload: "", stored }))).kind).toBe("accepted");
      expect(await queue.accept(byBytes, 10, newJob({ ...room, payload: "é" }))).toMatchObject({ what: "bytes" });
    });
  });
}

conformance("the queue in Redis", async () => {
  const redis = await startRedis();
  const queue = new RedisQueue({
    channels: CHANNELS,
    address: { kind: "socket", path: redis.path },
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  await queue.start();
  const stop = async () => {
    await queue.stop();
    await redis.stop();
  };
  return { queue, stop };
});

conformance("the queue of the HTTP tests", async () => ({ queue: new FakeQueue(), stop: async () => undefined }));
