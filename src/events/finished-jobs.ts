import { assert } from "../domain/errors.ts";
import { isJobId, jobTimeMs } from "../domain/ids.ts";
import { EVENT_IDS_PER_MS, type EventType, firstEventIdAt } from "../domain/jobs/event.ts";
import { failureClassOfJob } from "../domain/jobs/failure-class.ts";
import type {
  AllFinishedJobs,
  EndedJob,
  FinishedJobSummary,
  FinishedJobs,
  FinishedJobsPage,
  JobFilter,
  LaterEvents,
  RecipientFilter,
} from "../domain/jobs/job-search.ts";
import { parseTag } from "../domain/jobs/tags.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { readResult, readStatus, readType } from "./clickhouse-event-reader.ts";
import { REPORTED_TYPES } from "./job-outcome.ts";
import { eventLimits } from "./limits.ts";
import { SPARSE_TYPES } from "./schema/rollups.ts";
import { type EventStoreTarget, eventTime } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** Mail servers give up after five days, chat providers after thirty. In event ids. */
const DELIVERED_WITHIN = 35 * 24 * 60 * 60 * 1_000 * EVENT_IDS_PER_MS;

/** A page that meets outdated rows again and again ends short. */
const ROUNDS_MAX = 4;

/**
 * Lists a tenant's finished jobs. A first query finds ids: a range of the primary key, newest first, in which the filter on
 * recipients skips all granules without the hash. A second one reads the latest states of those few by key. A job whose latest
 * state no longer matches, because it was tried again, is left out.
 */
export class ClickHouseFinishedJobs implements FinishedJobs, AllFinishedJobs, LaterEvents {
  private readonly settings: string;

  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
    private readonly recipients: RecipientIndex,
  ) {
    this.settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  }

  finished(tenantId: string, filter: JobFilter, limit: number): Promise<FinishedJobsPage> {
    assert(TENANT_ID.test(tenantId), "a list of jobs belongs to a tenant");
    return this.page(tenantId, filter, limit);
  }

  /** The filter on recipients makes this a search instead of a scan. */
  finishedAnywhere(filter: RecipientFilter, limit: number): Promise<FinishedJobsPage> {
    return this.page(null, filter, limit);
  }

  async finishedJob(tenantId: string, jobId: string): Promise<FinishedJobSummary | null> {
    const [job = null] = await this.latest([{ tenantId, jobId }]);
    return job;
  }

  async findOwner(jobId: string): Promise<string | null> {
    const [row] = await this.clickhouse.rows(
      `SELECT tenant_id FROM ${this.target.database}.jobs
WHERE job_id = {job:UUID} AND toUInt128(job_id) = toUInt128({job:UUID})
LIMIT 1
SETTINGS ${this.settings}`,
      { job: jobId },
    );
    return row === undefined ? null : String(row[0]);
  }

  /** `tenantId` null: of all tenants. */
  private async page(tenantId: string | null, filter: JobFilter, limit: number): Promise<FinishedJobsPage> {
    const jobs: FinishedJobSummary[] = [];
    let { beforeJobId } = filter;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const wanted = limit - jobs.length;
      const keys = await this.keys(tenantId, { ...filter, beforeJobId }, wanted + 1);
      const here = keys.slice(0, wanted);
      jobs.push(...(await this.latest(here)).filter((job) => isWanted(job, filter)));
      if (keys.length <= wanted) return { jobs, moreBelow: null };
      beforeJobId = here.at(-1)?.jobId ?? null;
      if (jobs.length === limit) break;
    }
    return { jobs, moreBelow: beforeJobId };
  }

  async count(tenantId: string, filter: JobFilter): Promise<number> {
    assert(TENANT_ID.test(tenantId), "a list of jobs belongs to a tenant");
    const { where, params } = this.conditions(tenantId, filter);
    const [row] = await this.clickhouse.rows(
      `SELECT count() FROM ${this.target.database}.jobs FINAL WHERE ${where} SETTINGS ${this.settings}`,
      params,
    );
    return Number(row?.[0] ?? 0);
  }

  /**
   * Reports are rare types, each a range of its key; deliveries are looked up with the filter on job ids. No report is older
   * than its job's end, so the oldest end bounds both.
   */
  async laterEvents(jobs: readonly EndedJob[]): Promise<ReadonlyMap<string, readonly EventType[]>> {
    assertKeys(jobs);
    const ends = new Map(jobs.map(({ jobId, endEventId }) => [jobId, endEventId]));
    const tenants = [...new Set(jobs.map(({ tenantId }) => `'${tenantId}'`))].join(", ");
    const ids = jobs.map(({ jobId }) => `toUUID('${jobId}')`).join(", ");
    const of = (table: string, types: readonly EventType[], to: number) =>
      this.clickhouse.rows(
        `SELECT job_id, toString(event_type) AS type, max(event_id) AS latest
FROM ${this.target.database}.${table}
WHERE tenant_id IN (${tenants}) AND event_type IN (${types.map((type) => `'${type}'`).join(", ")})
  AND event_id > {from:UInt64} AND event_id <= {to:UInt64} AND job_id IN (${ids}) AND NOT JSONHas(result, 'recipient')
GROUP BY job_id, type
SETTINGS ${this.settings}`,
        { from: Math.min(...ends.values()), to },
      );
    const sparse = REPORTED_TYPES.filter((type) => SPARSE_TYPES.includes(type));
    const [rare, delivered] = await Promise.all([
      of("events_by_type", sparse, Number.MAX_SAFE_INTEGER),
      of("events", ["delivered"], Math.max(...ends.values()) + DELIVERED_WITHIN),
    ]);
    const found = new Map<string, EventType[]>();
    for (const [jobId, type, latest] of [...rare, ...delivered]) {
      const id = String(jobId);
      // Reports on a retried job's earlier run do not count.
      if (Number(latest) <= (ends.get(id) ?? 0)) continue;
      found.set(id, [...(found.get(id) ?? []), readType(type)]);
    }
    return found;
  }

  private conditions(tenantId: string | null, filter: JobFilter) {
    const { status, channel, recipient, template, tag, failureClass, fromJobId, beforeJobId } = filter;
    const conditions: readonly (readonly [string | null, string])[] = [
      [tenantId, "tenant_id = {tenant:String}"],
      [beforeJobId, "toUInt128(job_id) < toUInt128({before:UUID})"],
      [fromJobId, "toUInt128(job_id) >= toUInt128({from:UUID})"],
      [status, "status = {status:String}"],
      [channel, "channel = {channel:String}"],
      [recipient, "recipient_hash = {recipient:UUID}"],
      [template, "template = {template:String}"],
      [tag, "has(tags, {tag:String})"],
      [failureClass, this.failedFor(tenantId)],
    ];
    const params = {
      ...(tenantId !== null && { tenant: tenantId }),
      ...(beforeJobId !== null && { before: beforeJobId }),
      ...(fromJobId !== null && { from: fromJobId }),
      ...(status !== null && { status }),
      ...(channel !== null && { channel }),
      ...(recipient !== null && { recipient: this.recipients.hashRecipient(recipient) }),
      ...(template !== null && { template }),
      ...(tag !== null && { tag }),
      ...(failureClass !== null && {
        class: failureClass,
        // A job cannot fail before it is accepted.
        first: fromJobId === null ? 1 : Math.max(1, firstEventIdAt(jobTimeMs(fromJobId))),
      }),
    };
    assert(tenantId !== null || recipient !== null, "all jobs of all tenants are no list");
    const all = conditions.flatMap(([value, sql]) => (value === null ? [] : [sql]));
    return { where: all.join(" AND "), params };
  }

  private failedFor(tenantId: string | null): string {
    return `job_id IN (SELECT job_id FROM ${this.target.database}.events_by_type
WHERE ${tenantId === null ? "" : "tenant_id = {tenant:String} AND "}event_type IN ('failed', 'bounced')
  AND event_id >= {first:UInt64} AND failure_class = {class:String} AND NOT JSONHas(result, 'recipient'))`;
  }

  private async keys(tenantId: string | null, filter: JobFilter, rows: number): Promise<readonly JobKey[]> {
    const { where, params } = this.conditions(tenantId, filter);
    const found = await this.clickhouse.rows(
      `SELECT tenant_id, job_id
FROM ${this.target.database}.jobs
WHERE ${where}
ORDER BY ${tenantId === null ? "" : "tenant_id DESC, "}toUInt128(job_id) DESC
LIMIT 1 BY job_id
LIMIT {rows:UInt32}
SETTINGS ${this.settings}`,
      { ...params, rows },
    );
    return found.map(([tenant, jobId]) => ({ tenantId: String(tenant), jobId: String(jobId) }));
  }

  /** Returns the latest states in the order of the ids, all of which are in this event store. */
  private async latest(jobs: readonly JobKey[]): Promise<readonly FinishedJobSummary[]> {
    if (jobs.length === 0) return [];
    assertKeys(jobs);
    const keys = jobs.map(({ tenantId, jobId }) => `('${tenantId}', toUInt128(toUUID('${jobId}')))`).join(", ");
    const rows = await this.clickhouse.rows(
      `SELECT tenant_id, job_id, channel, status, attempts, result, template, recipient_domain, tags,
  toUnixTimestamp64Milli(${eventTime("version")}), version
FROM ${this.target.database}.jobs
WHERE (tenant_id, toUInt128(job_id)) IN (${keys})
ORDER BY toUInt128(job_id) DESC, version DESC
LIMIT 1 BY job_id
SETTINGS ${this.settings}`,
    );
    return rows.map(readSummary);
  }
}

function assertKeys(jobs: readonly JobKey[]): void {
  assert(
    jobs.every(({ tenantId, jobId }) => TENANT_ID.test(tenantId) && isJobId(jobId)),
    "names become part of a statement",
  );
}

interface JobKey {
  readonly tenantId: string;
  readonly jobId: string;
}

function isWanted(job: FinishedJobSummary, { status, failureClass }: JobFilter): boolean {
  if (status !== null && status !== job.status) return false;
  // A job that was tried again may have failed for another reason since.
  return failureClass === null || job.status !== "failed" || failureClassOfJob(job) === failureClass;
}

function readSummary(row: readonly unknown[]): FinishedJobSummary {
  const [tenantId, jobId, channel, status, attempts, result, template, recipientDomain, tags, finishedAtMs, version] =
    row;
  return {
    tenantId: String(tenantId),
    jobId: String(jobId),
    channel: String(channel),
    status: readStatus(status),
    attempts: Number(attempts),
    result: readResult(result),
    template: String(template),
    recipientDomain: String(recipientDomain),
    tags: Array.isArray(tags) ? tags.map(String).map(parseTag) : [],
    finishedAtMs: Number(finishedAtMs),
    endEventId: Number(version),
  };
}
