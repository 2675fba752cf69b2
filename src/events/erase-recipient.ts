import { type Clock, sleep } from "../domain/clock.ts";
import { assert } from "../domain/errors.ts";
import { isJobId } from "../domain/ids.ts";
import { ERASED_TEXT, type ErasedHistory, HARMLESS_MEMBERS, type HistoryErasure } from "../domain/tenants/erasure.ts";
import { NO_RECIPIENT, type RecipientIndex } from "../domain/tenants/recipient-index.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { sealedTarget } from "./failed-payloads.ts";
import { eventLimits } from "./limits.ts";
import { quoteRecipient } from "./recipient-quotes.ts";
import { type EventStoreTarget, localName, onCluster } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

export interface EraseRecipientOptions {
  readonly reading: ClickHouse;
  readonly writing: ClickHouse;
  readonly target: EventStoreTarget;
  readonly recipients: RecipientIndex;
  readonly clock: Clock;
}

/** The most jobs that one call handles; there may be more. */
const JOBS_MAX = 10_000;
/** Jobs that one mutation names: its text stays below the server's limit. */
const JOBS_TOGETHER = 1_000;
const ROWS_MAX = 1_000;
const WAIT_MS = 8_000;
const LOOK_MS = 100;

/** SQL for `maskedResult`. */
const MASKED = `concat('{', arrayStringConcat(arrayMap(member -> concat(toJSONString(member.1), ':', if(member.1 IN (${HARMLESS_MEMBERS.map((name) => `'${name}'`).join(", ")}), member.2, '"${ERASED_TEXT}"')), JSONExtractKeysAndValuesRaw(result)), ','), '}')`;

/**
 * Erases a recipient from a tenant's history. Rows stay, and so do sums and counts.
 *
 * H1. The jobs lose their keyed hash last: until then they are found again, however often the call is interrupted.
 * H2. No statement that the server keeps (its list of mutations) has the recipient: it names jobs.
 * H3. Jobs from before there was a hash, reports that came later, and events about a copy are found by their texts, which quote the
 *     recipient. `events` has all of them and is masked after `events_by_type`, so it leads to them until both are masked.
 */
export class RecipientErasure implements HistoryErasure {
  constructor(private readonly options: EraseRecipientOptions) {}

  async eraseRecipient(tenantId: string, recipient: string): Promise<ErasedHistory> {
    assert(TENANT_ID.test(tenantId), "an erasure belongs to a tenant");
    const found = await this.findJobs(tenantId, recipient);
    const jobs = found.slice(0, JOBS_MAX);
    assert(jobs.every(isJobId), "ids become part of a statement");
    let [finishedJobs, events] = [0, 0];
    for (let at = 0; at < jobs.length; at += JOBS_TOGETHER) {
      const piece = jobs.slice(at, at + JOBS_TOGETHER);
      events += await this.maskEvents(tenantId, piece);
      finishedJobs += await this.maskJobs(tenantId, piece);
    }
    await this.maskRefused(tenantId, recipient);
    const payloads = await this.removePayloads(tenantId, recipient);
    const isDone = await this.areMutationsDone();
    return { finishedJobs, events, payloads, isComplete: isDone && found.length <= JOBS_MAX };
  }

  private async findJobs(tenantId: string, recipient: string): Promise<readonly string[]> {
    const { database } = this.options.target;
    // Former releases masked `events_by_type` last, and may have stopped before it.
    const rows = await this.options.reading.rows(
      `SELECT DISTINCT job_id FROM (
  SELECT job_id FROM ${database}.jobs
  WHERE tenant_id = {tenant:String} AND (recipient_hash = {hash:UUID} OR ${quoting("result")} OR ${quoting("attempts_log")})
  UNION ALL
  SELECT job_id FROM ${database}.events WHERE tenant_id = {tenant:String} AND ${quoting("result")}
  UNION ALL
  SELECT job_id FROM ${database}.events_by_type WHERE tenant_id = {tenant:String} AND ${quoting("result")}
) LIMIT ${JOBS_MAX + 1}
SETTINGS ${this.settings()}`,
      { tenant: tenantId, hash: this.options.recipients.hashRecipient(recipient), ...quoteRecipient(recipient) },
    );
    return rows.map(([jobId]) => String(jobId));
  }

  private async maskEvents(tenantId: string, jobs: readonly string[]): Promise<number> {
    const where = `${ofJobs(tenantId, jobs)} AND result != '{}' AND result != ${MASKED}`;
    await this.update("events_by_type", `result = ${MASKED}`, where);
    return this.update("events", `result = ${MASKED}`, where);
  }

  private maskJobs(tenantId: string, jobs: readonly string[]): Promise<number> {
    const where = `${ofJobs(tenantId, jobs)} AND (recipient_hash != '${NO_RECIPIENT}' OR result != ${MASKED} OR attempts_log != '[]' OR tags != [])`;
    const columns = `recipient_hash = '${NO_RECIPIENT}', recipient_domain = '', attempts_log = '[]', tags = [], result = ${MASKED}`;
    return this.update("jobs", columns, where);
  }

  private async maskRefused(tenantId: string, recipient: string): Promise<void> {
    const rows = await this.options.reading.rows(
      `SELECT DISTINCT token FROM ${this.options.target.database}.refused_rows
WHERE tenant_id = {tenant:String} AND (${quoting("row")} OR ${quoting("fault")})
LIMIT ${ROWS_MAX}
SETTINGS ${this.settings()}`,
      { tenant: tenantId, ...quoteRecipient(recipient) },
    );
    const tokens = rows.map(([token]) => String(token)).filter((token) => /^[A-Za-z0-9:_./-]{1,200}$/.test(token));
    if (tokens.length === 0) return;
    const named = tokens.map((token) => `'${token}'`).join(", ");
    await this.mutate(
      "refused_rows",
      `UPDATE row = '(erased)', fault = '(erased)' WHERE tenant_id = '${tenantId}' AND token IN (${named})`,
    );
  }

  /** Removes the stored content of failed jobs. */
  private async removePayloads(tenantId: string, recipient: string): Promise<number> {
    const where = `tenant_id = '${tenantId}' AND recipient_hash = '${this.options.recipients.hashRecipient(recipient)}'`;
    const sealed = sealedTarget(this.options.target);
    const count = await this.count("failed_payloads", where, sealed);
    if (count > 0) await this.mutate("failed_payloads", `DELETE WHERE ${where}`, sealed);
    return count;
  }

  private async count(table: string, where: string, { database } = this.options.target): Promise<number> {
    const [row] = await this.options.reading.rows(
      `SELECT count() FROM ${database}.${table} WHERE ${where} SETTINGS ${this.settings()}`,
    );
    return Number(row?.[0] ?? 0);
  }

  /** Returns how many rows it changes. Each table is counted by itself: an earlier call may have changed only some of them. */
  private async update(table: string, columns: string, where: string): Promise<number> {
    const count = await this.count(table, where);
    if (count > 0) await this.mutate(table, `UPDATE ${columns} WHERE ${where}`);
    return count;
  }

  /** Once it has answered, the server completes the mutation by itself, even after a restart. */
  private mutate(table: string, change: string, target = this.options.target): Promise<void> {
    const { writing } = this.options;
    const name = `${target.database}.${localName(target, table)}${onCluster(target.cluster)}`;
    return writing.command(`ALTER TABLE ${name} ${change} SETTINGS mutations_sync = 0`);
  }

  private async areMutationsDone(): Promise<boolean> {
    const { target, reading, clock } = this.options;
    const { database, cluster } = target;
    const table = cluster === null ? "system.mutations" : `clusterAllReplicas('${cluster}', system.mutations)`;
    const untilMs = clock.monotonicMs() + WAIT_MS;
    for (;;) {
      const [row] = await reading.rows(
        `SELECT count() FROM ${table} WHERE database IN ('${database}', '${sealedTarget(target).database}') AND NOT is_done SETTINGS ${this.settings()}`,
      );
      if (Number(row?.[0] ?? 0) === 0) return true;
      if (clock.monotonicMs() >= untilMs) return false;
      await sleep(clock, LOOK_MS);
    }
  }

  private settings(): string {
    return selectSettings(this.options.target, eventLimits.eventStoreReadTimeoutMs);
  }
}

/** Whether the column's text quotes the recipient, whose `RecipientQuotes` are bound. */
function quoting(column: string): string {
  const has = (part: string) => `positionCaseInsensitiveUTF8(${column}, {${part}:String}) > 0`;
  return `(${has("part")} AND ${has("otherPart")} AND match(${column}, {pattern:String}))`;
}

function ofJobs(tenantId: string, jobs: readonly string[]): string {
  return `tenant_id = '${tenantId}' AND job_id IN (${jobs.map((jobId) => `'${jobId}'`).join(", ")})`;
}
