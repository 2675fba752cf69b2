import { expect, test } from "bun:test";
import { jobIdAt } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { RestoredJobs } from "../../../src/engine/channels/restored-jobs.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";
import { aTenant } from "../../support/tenants.ts";

const CUT_MS = 1_800_000_000_000;
const RESTORED_MS = CUT_MS + 12 * 3_600_000;

function aJob(acceptedMs: number, more: Partial<QueuedJob> = {}): QueuedJob {
  const jobId = jobIdAt(acceptedMs);
  const place = { tenantId: "acme", channel: "email", entryId: "1-0", attempts: 0, recipient: "", payload: "{}" };
  return { jobId, ...place, suppressed: null, ...more };
}

test.each<[string, QueuedJob, "failed" | "delivered"]>([
  ["was queued when the backup was taken", aJob(CUT_MS - 1_000), "failed"],
  ["was to be sent between the backup and the restore", aJob(CUT_MS - 1_000, { dueMs: CUT_MS + 3_600_000 }), "failed"],
  ["is scheduled for later than the restore", aJob(CUT_MS - 1_000, { dueMs: RESTORED_MS + 1 }), "delivered"],
  ["was accepted after the backup", aJob(CUT_MS + 1_000), "delivered"],
  ["was retried since", aJob(CUT_MS - 1_000, { retriedAtMs: CUT_MS + 1_000 }), "delivered"],
])("after a restore that does not send again, a job that %s is right", async (_, job, expected) => {
  const channel = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  const restored = new RestoredJobs({ acceptedMs: CUT_MS, dueMs: RESTORED_MS }).over(channel);
  const outcome = await restored.deliver(job, aTenant(), new AbortController().signal);
  expect(outcome.kind).toBe(expected);
});
