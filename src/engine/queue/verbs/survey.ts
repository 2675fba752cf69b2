import type { ChannelName, KeptContent, QueuedJob } from "../../../domain/jobs/job.ts";
import {
  ANY_JOB,
  type JobFilter,
  type QueuedJobOfTenant,
  type QueuedJobSummary,
  type RecipientFilter,
} from "../../../domain/jobs/job-search.ts";
import type { TenantQueue } from "../../../domain/jobs/queue.ts";
import type { WaitingContent } from "../../../domain/jobs/retry.ts";
import { tagText } from "../../../domain/jobs/tags.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { engineLimits } from "../../limits.ts";
import { type ChannelLetters, decodeEntry, decodeRow, decodeTenantQueues, encodeTenantQueue } from "../codec.ts";
import type { RedisConnection } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import surveyLua from "./survey.lua" with { type: "text" };

const script = new Script(surveyLua, "run");

type Place = "queue" | "tail" | "parked" | "outbox" | "job" | "entry" | "names";

/** Where to continue, entries and bytes that were read, the findings, and the first entry that was read. */
type SurveyReply = [string, [number, number], string[], string?];

interface Survey {
  readonly jobs: Map<string, QueuedJobOfTenant>;
  readonly shard: number;
  /** Null: all tenants of the shard. */
  readonly tenantId: string | null;
  readonly filter: JobFilter;
  /** Most entries of a tenant queue, and of each other part. */
  readonly queueEntriesMax: number;
  readonly entriesMax: number;
  isIncomplete: boolean;
}

const FIRST_STEP = 16;
/** Shards that are searched at a time. */
const SHARDS_TOGETHER = 4;

/**
 * Searches a tenant's jobs, for operators.
 *
 * U1. No call reads more than about `surveyBytes`, whatever is queued, so none blocks Redis; the steps follow the size
 *     of the entries before.
 * U2. The parts are read in the order in which jobs move: tenant queues, parked jobs, entries that returned meanwhile,
 *     the outbox. A job that moves is found in its old or in its new part.
 */
export class QueueSurvey {
  constructor(
    private readonly connection: RedisConnection,
    private readonly letters: ChannelLetters,
  ) {}

  async waitingJobs(
    { tenantId, shard }: TenantRef,
    filter: JobFilter,
    entriesMax: number = engineLimits.surveyEntriesMax,
  ) {
    const bounds = { queueEntriesMax: entriesMax, entriesMax };
    const survey: Survey = { jobs: new Map(), shard, tenantId, filter, ...bounds, isIncomplete: false };
    const channels = filter.channel === null ? this.letters.names : [filter.channel];
    await this.lookThrough(
      survey,
      channels.map((channel) => ({ tenantId, channel })),
    );
    const jobs: readonly QueuedJobSummary[] = newestFirst(survey.jobs.values());
    return { jobs, isIncomplete: survey.isIncomplete };
  }

  async waitingAnywhere(shards: number, filter: RecipientFilter) {
    const jobs: QueuedJobOfTenant[] = [];
    let isIncomplete = false;
    for (let first = 0; first < shards; first += SHARDS_TOGETHER) {
      const here = Array.from({ length: Math.min(SHARDS_TOGETHER, shards - first) }, (_, at) => first + at);
      for (const survey of await Promise.all(here.map((shard) => this.lookThroughShard(shard, filter)))) {
        jobs.push(...survey.jobs.values());
        isIncomplete ||= survey.isIncomplete;
      }
    }
    return { jobs: newestFirst(jobs), isIncomplete };
  }

  private async lookThroughShard(shard: number, filter: RecipientFilter): Promise<Survey> {
    const { surveyAnywhereQueueMax: queueEntriesMax, surveyEntriesMax: entriesMax } = engineLimits;
    const bounds = { queueEntriesMax, entriesMax };
    const survey: Survey = { jobs: new Map(), shard, tenantId: null, filter, ...bounds, isIncomplete: false };
    const names = new Set<string>();
    // A tenant queue moves from the first set to the second.
    for (const name of ["ready", "held"]) {
      const from = "0";
      await this.read(survey, { place: "names", name, from }, (found) => found.forEach((each) => names.add(each)));
    }
    const queues = decodeTenantQueues(this.letters, [...names]);
    await this.lookThrough(
      survey,
      queues.filter(({ channel }) => filter.channel === null || filter.channel === channel),
    );
    return survey;
  }

  private async lookThrough(survey: Survey, queues: readonly TenantQueue[]): Promise<void> {
    const newest: string[] = [];
    for (const queue of queues) newest.push(await this.readQueue(survey, queue));
    const name = survey.tenantId ?? "";
    await this.read(survey, { place: "parked", name, from: "0" }, (found) => {
      for (let at = 0; at < found.length; at += 3) this.addParked(survey, found.slice(at, at + 3));
    });
    for (const [at, queue] of queues.entries()) {
      await this.read(survey, { place: "tail", name: this.encodeName(queue), from: newest[at] ?? "0" }, (found) => {
        for (let i = 0; i < found.length; i += 2) this.add(survey, queue.tenantId, found[i + 1] ?? "", null);
      });
    }
    await this.read(survey, { place: "outbox", name, from: "" }, (found) => {
      for (const line of found) this.addEnded(survey, line);
    });
  }

  async waitingJob({ tenantId, shard }: TenantRef, jobId: string): Promise<QueuedJobSummary | null> {
    const [, , [tenantQueue = "", due = "", head = ""]] = await this.call(shard, "job", jobId, "", 1, "");
    if (head === "" || !tenantQueue.startsWith(`${tenantId}/`)) return null;
    return this.toSummary(tenantId, head, due === "" ? null : Number(due));
  }

  /** Returns the message of an unfinished fallback; null: the job is not a fallback. */
  async findMainJobId({ tenantId, shard }: TenantRef, jobId: string): Promise<string | null> {
    const [, , [tenantQueue = "", , head = ""]] = await this.call(shard, "job", jobId, "", 1, "");
    if (!tenantQueue.startsWith(`${tenantId}/`)) return null;
    return this.decodeHead(tenantId, head).fallback?.mainJobId ?? null;
  }

  async jobsAhead({ tenantId, shard }: TenantRef, channel: ChannelName, jobId: string): Promise<number | null> {
    const bounds = { queueEntriesMax: engineLimits.surveyAheadMax, entriesMax: 0 };
    const survey: Survey = { jobs: new Map(), shard, tenantId, filter: ANY_JOB, ...bounds, isIncomplete: false };
    let [ahead, isFound] = [0, false];
    await this.read(survey, { place: "tail", name: this.encodeName({ tenantId, channel }), from: "0" }, (found) => {
      for (let at = 1; at < found.length && !isFound; at += 2) {
        isFound = found[at]?.startsWith(jobId) === true;
        if (!isFound) ahead += 1;
      }
      return !isFound;
    });
    return isFound ? ahead : null;
  }

  async waitingContent({ tenantId, shard }: TenantRef, jobId: string): Promise<WaitingContent | null> {
    const [, , [tenantQueue = "", , entry = ""]] = await this.call(shard, "entry", jobId, "", 1, "");
    if (entry === "" || !tenantQueue.startsWith(`${tenantId}/`)) return null;
    const { channel, payload, stored } = decodeEntry({ letters: this.letters, tenantId }, "", entry, "");
    return { channel, payload, ...(stored !== undefined && { stored }) };
  }

  /** Returns the contents of these jobs whose ends are in the outbox. */
  async unrecordedContents(tenant: TenantRef, jobIds: readonly string[]): Promise<ReadonlyMap<string, KeptContent>> {
    const wanted = new Set(jobIds);
    const found = new Map<string, KeptContent>();
    const { tenantId, shard } = tenant;
    const bounds = { queueEntriesMax: 0, entriesMax: engineLimits.surveyEntriesMax };
    const survey = { jobs: new Map(), shard, tenantId, filter: ANY_JOB, ...bounds, isIncomplete: false };
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

  /** A batch stays in the outbox until it is stored. */
  async hasUnrecorded({ tenantId, shard }: TenantRef): Promise<boolean> {
    const bounds = { queueEntriesMax: 0, entriesMax: engineLimits.surveyUnrecordedMax };
    const survey = { jobs: new Map(), shard, tenantId, filter: ANY_JOB, ...bounds, isIncomplete: false };
    let isFound = false;
    await this.read(survey, { place: "outbox", name: tenantId, from: "" }, (rows) => {
      isFound = rows.length > 0;
      return !isFound;
    });
    return isFound || survey.isIncomplete;
  }

  /** Returns the newest entry's id, "0" if there is none. */
  private async readQueue(survey: Survey, queue: TenantQueue): Promise<string> {
    let newest = "0";
    await this.read(survey, { place: "queue", name: this.encodeName(queue), from: "" }, (found, first) => {
      if (newest === "0" && first !== "") newest = first;
      for (let at = 0; at < found.length; at += 2) this.add(survey, queue.tenantId, found[at + 1] ?? "", null);
    });
    return newest;
  }

  private async read(
    survey: Survey,
    { place, name, from }: { readonly place: Place; readonly name: string; readonly from: string },
    /** False: the caller needs no more. */
    // A caller that needs all entries returns no value.
    take: (found: readonly string[], first: string) => boolean | void,
  ): Promise<void> {
    const { shard, filter } = survey;
    const max = place === "queue" || place === "tail" ? survey.queueEntriesMax : survey.entriesMax;
    let [at, step, left] = [from, FIRST_STEP, max];
    while (left > 0) {
      const asked = [place, name, at, Math.min(step, left), filter.recipient ?? ""] as const;
      const [next, [read, bytes], found, first = ""] = await this.call(shard, ...asked);
      if (take(found, first) === false || next === "") return;
      left -= read;
      step = nextStep(step, read, bytes);
      at = next;
    }
    survey.isIncomplete = true;
  }

  private async call(shard: number, ...args: [Place, string, string, number, string]): Promise<SurveyReply> {
    // The script answers in this form.
    return (await script.run(this.connection, [shardPrefix(shard)], args)) as SurveyReply;
  }

  private encodeName(queue: TenantQueue): string {
    return encodeTenantQueue(this.letters, queue);
  }

  private addParked(survey: Survey, [tenantQueue = "", due = "", head = ""]: readonly string[]): void {
    if (!this.letters.knows(tenantQueue.slice(-1))) return;
    this.add(survey, tenantQueue.slice(0, -2), head, due === "" ? null : Number(due));
  }

  private add(survey: Survey, tenantId: string, head: string, nextAttemptMs: number | null): void {
    const job = this.toSummary(tenantId, head, nextAttemptMs);
    const tenant = { tenantId, shard: survey.shard };
    if (matches(job, survey.filter)) survey.jobs.set(job.jobId, { ...job, tenant });
  }

  private addEnded(survey: Survey, line: string): void {
    const { tenantId, jobId, channel, finished } = decodeRow(this.letters, line);
    if (finished === null) return;
    const { recipient = "", template = null, tags = [] } = finished;
    // A job that was retried, or has ended since its entry was read, was found in both parts.
    const isEnded = survey.jobs.has(jobId) ? null : true;
    const job = { jobId, channel, recipient, template, tags, dueMs: null, nextAttemptMs: null, isEnded };
    const tenant = { tenantId, shard: survey.shard };
    if (matches(job, survey.filter)) survey.jobs.set(jobId, { ...job, tenant });
  }

  private toSummary(tenantId: string, head: string, nextAttemptMs: number | null): QueuedJobSummary {
    const job = this.decodeHead(tenantId, head);
    const { jobId, channel, recipient, template = null, tags = [], dueMs = null } = job;
    return { jobId, channel, recipient, template, tags, dueMs, nextAttemptMs, isEnded: false };
  }

  private decodeHead(tenantId: string, head: string): QueuedJob {
    const entry = head.includes("\n") ? head : `${head}\n`;
    return decodeEntry({ letters: this.letters, tenantId }, "", entry, "");
  }
}

function newestFirst(jobs: Iterable<QueuedJobOfTenant>): readonly QueuedJobOfTenant[] {
  return [...jobs].toSorted((a, b) => (a.jobId < b.jobId ? 1 : -1));
}

function nextStep(step: number, read: number, bytes: number): number {
  const { surveyBytes, surveyStepMax } = engineLimits;
  if (read === 0) return Math.min(2 * step, surveyStepMax);
  return Math.max(1, Math.min(4 * step, surveyStepMax, Math.floor((surveyBytes * read) / Math.max(1, bytes))));
}

function matches(job: QueuedJobSummary, filter: JobFilter): boolean {
  const { channel, recipient, template, tag, fromJobId, beforeJobId } = filter;
  if (channel !== null && job.channel !== channel) return false;
  if (recipient !== null && job.recipient !== recipient) return false;
  if (template !== null && job.template !== template) return false;
  if (tag !== null && !job.tags.some((each) => tagText(each) === tag)) return false;
  return (fromJobId === null || job.jobId >= fromJobId) && (beforeJobId === null || job.jobId < beforeJobId);
}
