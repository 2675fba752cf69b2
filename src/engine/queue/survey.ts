import type { ChannelName, KeptContent } from "../../domain/job.ts";
import type { JobFilter, QueuedJobSummary } from "../../domain/job-search.ts";
import type { WaitingContent } from "../../domain/retry.ts";
import type { TenantRef } from "../../domain/tenant.ts";
import { engineLimits } from "../limits.ts";
import { type ChannelLetters, decodeEntry, decodeRow, encodeTenantQueue } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { Script } from "./script.ts";
import surveyLua from "./survey.lua" with { type: "text" };

const script = new Script(surveyLua, "run");

type Place = "queue" | "tail" | "parked" | "outbox" | "job" | "entry";

/** Where to go on, entries and bytes that were read, and what was found. */
type SurveyReply = [string, [number, number], string[]];

interface Survey {
  readonly jobs: Map<string, QueuedJobSummary>;
  readonly tenant: TenantRef;
  readonly filter: JobFilter;
  isIncomplete: boolean;
}

const FIRST_STEP = 16;

const ANY: JobFilter = {
  status: null,
  channel: null,
  recipient: null,
  template: null,
  fromJobId: null,
  beforeJobId: null,
};

/**
 * Looks through a tenant's jobs, for operators.
 *
 * U1. No call reads more than about `surveyBytes`, whatever is queued, so none holds Redis up; the steps follow the size of
 *     the entries before.
 * U2. The places are read in the order in which jobs move: tenant queues, parked jobs, entries that came back meanwhile,
 *     the outbox. A job that moves is found where it was or where it went.
 */
export class QueueSurvey {
  constructor(
    private readonly connection: RedisConnection,
    private readonly letters: ChannelLetters,
  ) {}

  async waitingJobs(tenant: TenantRef, filter: JobFilter) {
    const survey: Survey = { jobs: new Map(), tenant, filter, isIncomplete: false };
    const channels = filter.channel === null ? this.letters.names : [filter.channel];
    const newest = new Map<ChannelName, string>();
    for (const channel of channels) newest.set(channel, await this.readQueue(survey, channel));
    await this.read(survey, { place: "parked", name: tenant.tenantId, from: "0" }, (found) => {
      for (let at = 0; at < found.length; at += 3) this.addParked(survey, found.slice(at, at + 3));
    });
    for (const [channel, from] of newest) {
      await this.read(survey, { place: "tail", name: this.queueOf(tenant, channel), from }, (found) => {
        for (let at = 0; at < found.length; at += 2) this.add(survey, found[at + 1] ?? "", null);
      });
    }
    await this.read(survey, { place: "outbox", name: tenant.tenantId, from: "" }, (found) => {
      for (const line of found) this.addEnded(survey, line);
    });
    const jobs = [...survey.jobs.values()].toSorted((a, b) => (a.jobId < b.jobId ? 1 : -1));
    return { jobs, isIncomplete: survey.isIncomplete };
  }

  async waitingJob({ tenantId, shard }: TenantRef, jobId: string): Promise<QueuedJobSummary | null> {
    const [, , [tenantQueue = "", due = "", head = ""]] = await this.call(shard, "job", jobId, "", 1);
    if (head === "" || !tenantQueue.startsWith(`${tenantId}/`)) return null;
    return this.summaryOf(tenantId, head, due === "" ? null : Number(due));
  }

  async waitingContent({ tenantId, shard }: TenantRef, jobId: string): Promise<WaitingContent | null> {
    const [, , [tenantQueue = "", , entry = ""]] = await this.call(shard, "entry", jobId, "", 1);
    if (entry === "" || !tenantQueue.startsWith(`${tenantId}/`)) return null;
    const { channel, payload, stored } = decodeEntry({ letters: this.letters, tenantId }, "", entry, "");
    return { channel, payload, ...(stored !== undefined && { stored }) };
  }

  /** What these jobs were to send, as far as their ends are in the outbox. */
  async unrecordedContents(tenant: TenantRef, jobIds: readonly string[]): Promise<ReadonlyMap<string, KeptContent>> {
    const wanted = new Set(jobIds);
    const found = new Map<string, KeptContent>();
    const survey = { jobs: new Map(), tenant, filter: ANY, isIncomplete: false };
    await this.read(survey, { place: "outbox", name: tenant.tenantId, from: "" }, (lines) => {
      for (const line of lines) {
        const { jobId, finished } = decodeRow(this.letters, line);
        // The newest first: an earlier life may have had another end.
        if (finished?.kept !== undefined && wanted.delete(jobId)) found.set(jobId, finished.kept);
      }
      return wanted.size > 0;
    });
    return found;
  }

  /** Returns the newest entry's id, "0" if there is none. */
  private async readQueue(survey: Survey, channel: ChannelName): Promise<string> {
    let newest = "0";
    await this.read(survey, { place: "queue", name: this.queueOf(survey.tenant, channel), from: "" }, (found) => {
      if (newest === "0") newest = found[0] ?? "0";
      for (let at = 0; at < found.length; at += 2) this.add(survey, found[at + 1] ?? "", null);
    });
    return newest;
  }

  private async read(
    survey: Survey,
    { place, name, from }: { readonly place: Place; readonly name: string; readonly from: string },
    /** False: nothing more is wanted. */
    // biome-ignore lint/suspicious/noConfusingVoidType: who wants everything says nothing.
    take: (found: readonly string[]) => boolean | void,
  ): Promise<void> {
    let [at, step, left] = [from, FIRST_STEP, engineLimits.surveyEntriesMax as number];
    while (left > 0) {
      const [next, [read, bytes], found] = await this.call(survey.tenant.shard, place, name, at, Math.min(step, left));
      if (take(found) === false || next === "") return;
      left -= read;
      step = nextStep(step, read, bytes);
      at = next;
    }
    survey.isIncomplete = true;
  }

  private async call(shard: number, ...args: [Place, string, string, number]): Promise<SurveyReply> {
    // The script answers in this form.
    return (await script.run(this.connection, [shardPrefix(shard)], args)) as SurveyReply;
  }

  private queueOf({ tenantId }: TenantRef, channel: ChannelName): string {
    return encodeTenantQueue(this.letters, { tenantId, channel });
  }

  private addParked(survey: Survey, [tenantQueue = "", due = "", head = ""]: readonly string[]): void {
    if (this.letters.knows(tenantQueue.slice(-1))) this.add(survey, head, due === "" ? null : Number(due));
  }

  private add(survey: Survey, head: string, nextAttemptMs: number | null): void {
    const job = this.summaryOf(survey.tenant.tenantId, head, nextAttemptMs);
    if (matches(job, survey.filter)) survey.jobs.set(job.jobId, job);
  }

  private addEnded(survey: Survey, line: string): void {
    const { jobId, channel, finished } = decodeRow(this.letters, line);
    if (finished === null) return;
    const { recipient = "", template = null } = finished;
    const job = { jobId, channel, recipient, template, nextAttemptMs: null };
    if (matches(job, survey.filter)) survey.jobs.set(jobId, job);
  }

  private summaryOf(tenantId: string, head: string, nextAttemptMs: number | null): QueuedJobSummary {
    const { letters } = this;
    const { jobId, channel, recipient, template = null } = decodeEntry({ letters, tenantId }, "", `${head}\n`, "");
    return { jobId, channel, recipient, template, nextAttemptMs };
  }
}

function nextStep(step: number, read: number, bytes: number): number {
  const { surveyBytes, surveyStepMax } = engineLimits;
  if (read === 0) return Math.min(2 * step, surveyStepMax);
  return Math.max(1, Math.min(4 * step, surveyStepMax, Math.floor((surveyBytes * read) / Math.max(1, bytes))));
}

function matches(job: QueuedJobSummary, filter: JobFilter): boolean {
  const { channel, recipient, template, fromJobId, beforeJobId } = filter;
  if (channel !== null && job.channel !== channel) return false;
  if (recipient !== null && job.recipient !== recipient) return false;
  if (template !== null && job.template !== template) return false;
  return (fromJobId === null || job.jobId >= fromJobId) && (beforeJobId === null || job.jobId < beforeJobId);
}
