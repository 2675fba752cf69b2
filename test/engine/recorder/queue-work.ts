import { expect } from "bun:test";
import { JobIds } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Lease, type Queue, type Settlement } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";

const PER_MINUTE = 1_000_000;
const jobIds = new JobIds(systemClock, systemRandom);

/** Accepts, pulls and settles e-mails of one tenant, every third of which fails, and answers their ids. */
export async function sendJobs(queue: Queue, tenant: TenantRef, count: number): Promise<string[]> {
  const accepted = await Promise.all(
    Array.from({ length: count }, () => {
      const work = { jobId: jobIds.next(), channel: "email", recipient: "a@b.test", payload: "{}" } as const;
      return queue.accept(tenant, PER_MINUTE, { ...work, template: "welcome", idempotency: null });
    }),
  );
  const lease = await queue.acquire(tenant.shard, "dispatcher", "test", null);
  if (lease === null) throw new Error("the lease is taken");
  let after: string | null = null;
  for (let settled = 0; settled < count; ) {
    const jobs = await pullSome(queue, lease, { tenantId: tenant.tenantId, after });
    expect(await queue.settle(lease, jobs.map(buildSettlement), null)).toBe("settled");
    settled += jobs.length;
    after = jobs.at(-1)?.entryId ?? after;
  }
  await queue.release(lease);
  return accepted.flatMap((answer) => (answer.kind === "accepted" ? [answer.jobId] : []));
}

function buildSettlement(job: QueuedJob, n: number): Settlement {
  const result = n % 3 === 0 ? { error: "refused; it's \\'" } : {};
  const [status, type] = n % 3 === 0 ? (["failed", "failed"] as const) : (["success", "sent"] as const);
  return { kind: "final", job, status, result, event: { type, result } };
}

async function pullSome(
  queue: Queue,
  lease: Lease,
  { tenantId, after }: { readonly tenantId: string; readonly after: string | null },
): Promise<readonly QueuedJob[]> {
  const tenantQueue = { tenantId, channel: "email" } as const;
  const bytesMax = 1024 * 1024;
  const tenantQueues = [{ tenantQueue, after, entriesMax: 64, bytesMax }];
  const pulled = await queue.pull(lease, {
    tenantQueues,
    survey: false,
    bytesMax,
    shardTimeMs: null,
    confirmedSkewMs: null,
  });
  if (pulled === FENCED) throw new Error("fenced");
  const jobs = pulled.tenantQueues[0]?.jobs ?? [];
  expect(jobs.length).toBeGreaterThan(0);
  return jobs;
}
