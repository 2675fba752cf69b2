import type { Clock } from "../domain/clock.ts";
import type { ContentSeal } from "../domain/content-seal.ts";
import { assert } from "../domain/errors.ts";
import { isJobId } from "../domain/ids.ts";
import { type DeliveryEvent, firstEventIdAt } from "../domain/jobs/event.ts";
import type { JobRecord, KeptContent } from "../domain/jobs/job.ts";
import type { FailedJob, FailedJobs } from "../domain/jobs/retry.ts";
import { limits } from "../domain/limits.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { readEvent, readJob } from "./clickhouse-event-reader.ts";
import { readContent, sealedTarget } from "./failed-payloads.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** Contents can be large: few are read at a time. */
const CONTENTS_TOGETHER = 8;
const DAY_MS = 24 * 60 * 60 * 1000;

export interface FailedJobsOptions {
  readonly clickhouse: ClickHouse;
  readonly target: EventStoreTarget;
  readonly seal: ContentSeal;
  readonly clock: Clock;
}

/** Reads failed jobs with their content, for retries by operators. */
export class ClickHouseFailedJobs implements FailedJobs {
  private readonly settings: string;

  constructor(private readonly options: FailedJobsOptions) {
    this.settings = selectSettings(options.target, eventLimits.eventStoreReadTimeoutMs);
  }

  async failedJobs(tenantId: string, jobIds: readonly string[]): Promise<ReadonlyMap<string, FailedJob>> {
    assert(TENANT_ID.test(tenantId) && jobIds.every(isJobId), "ids become part of a statement");
    const failed = await this.latest(tenantId, jobIds);
    const found = new Map<string, FailedJob>();
    for (let at = 0; at < failed.length; at += CONTENTS_TOGETHER) {
      const jobs = failed.slice(at, at + CONTENTS_TOGETHER);
      const contents = await this.contents(tenantId, jobs);
      for (const job of jobs) found.set(job.jobId, { job, content: contents.get(job.jobId) ?? null });
    }
    return found;
  }

  private async latest(tenantId: string, jobIds: readonly string[]): Promise<readonly JobRecord[]> {
    if (jobIds.length === 0) return [];
    const { clickhouse, target } = this.options;
    const rows = await clickhouse.rows(
      `SELECT channel, status, attempts, result, attempts_log, began, job_id
FROM ${target.database}.jobs
WHERE tenant_id = {tenant:String} AND toUInt128(job_id) IN (${formatKeys(jobIds)})
ORDER BY toUInt128(job_id) DESC, version DESC
LIMIT 1 BY job_id
SETTINGS ${this.settings}`,
      { tenant: tenantId },
    );
    const failed = rows.filter(([, status]) => status === "failed");
    const events = await this.events(
      tenantId,
      failed.map(([, , , , , , jobId]) => String(jobId)),
    );
    return failed.map((row) => {
      const jobId = String(row[6]);
      return readJob({ tenantId, jobId }, row, events.get(jobId) ?? []);
    });
  }

  private async events(tenantId: string, jobIds: readonly string[]): Promise<ReadonlyMap<string, DeliveryEvent[]>> {
    const events = new Map<string, DeliveryEvent[]>();
    if (jobIds.length === 0) return events;
    const { clickhouse, target } = this.options;
    const names = jobIds.map((jobId) => `'${jobId}'`).join(", ");
    const rows = await clickhouse.rows(
      `SELECT event_id, event_type, result, job_id
FROM ${target.database}.events
WHERE tenant_id = {tenant:String} AND job_id IN (${names})
ORDER BY tenant_id, event_id
LIMIT 1 BY event_id
LIMIT ${eventLimits.jobEventsMax}
SETTINGS ${this.settings}`,
      { tenant: tenantId },
    );
    for (const row of rows) {
      const jobId = String(row[3]);
      events.set(jobId, [...(events.get(jobId) ?? []), readEvent(row)]);
    }
    return events;
  }

  private async contents(tenantId: string, jobs: readonly JobRecord[]): Promise<ReadonlyMap<string, KeptContent>> {
    const { clickhouse, target, clock, seal } = this.options;
    // Rows leave by the day; those that have expired and are still there count as gone.
    const rows = await clickhouse.rows(
      `SELECT job_id, body
FROM ${sealedTarget(target).database}.failed_payloads
WHERE tenant_id = {tenant:String} AND toUInt128(job_id) IN (${formatKeys(jobs.map(({ jobId }) => jobId))})
  AND version >= {from:UInt64}
ORDER BY toUInt128(job_id) DESC, version DESC
LIMIT 1 BY job_id
SETTINGS ${this.settings}`,
      { tenant: tenantId, from: Math.max(0, firstEventIdAt(clock.nowMs() - limits.failedKeptDays * DAY_MS)) },
    );
    const contents = rows.map(([id, body]) => {
      const jobId = String(id);
      const text = seal.open(tenantId, jobId, String(body));
      return [jobId, text === null ? null : readContent(text)] as const;
    });
    return new Map(contents.flatMap(([jobId, content]) => (content === null ? [] : [[jobId, content] as const])));
  }
}

function formatKeys(jobIds: readonly string[]): string {
  return jobIds.map((jobId) => `toUInt128(toUUID('${jobId}'))`).join(", ");
}
