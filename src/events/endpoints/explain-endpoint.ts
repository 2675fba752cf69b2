import { Type } from "@sinclair/typebox";
import type { Clock } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import { isJobId } from "../../domain/ids.ts";
import type { EventReader } from "../../domain/jobs/event-store.ts";
import { FAILURE_CLASSES, failureClassOfJob } from "../../domain/jobs/failure-class.ts";
import { type Attempt, type ChannelName, isFinal, JOB_STATUSES, type JobRecord } from "../../domain/jobs/job.ts";
import { type JobQuestions, type OwnersAnswer, WAITS, type WaitsFor } from "../../domain/jobs/job-questions.ts";
import type { QueuedJobSummary, QueuedJobs } from "../../domain/jobs/job-search.ts";
import { ownerlessShards, type ProcessStatuses } from "../../domain/process-status.ts";
import { paceFor } from "../../domain/tenants/reputation.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { dailyAllowance, untilNextUtcDayMs, utcDayAt } from "../../domain/tenants/warm-up.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { enumSchema, Uuid } from "../../http/schemas.ts";
import { noSuch } from "../../http/store-results.ts";
import { EXAMPLE_JOB_ID } from "./answer-schemas.ts";
import { jobIdOfTenant, NO_SUCH_JOB } from "./job-endpoints.ts";
import { JobAttempt, shownAttempt, timeText } from "./operator-job-endpoints.ts";

export interface ExplainPorts {
  readonly queue: QueuedJobs;
  readonly eventStore: Pick<EventReader, "job">;
  readonly questions: Pick<JobQuestions, "ask">;
  readonly processStatuses: Pick<ProcessStatuses, "statuses">;
  readonly clock: Clock;
}

const Explanation = Type.Object(
  {
    job_id: Uuid,
    status: enumSchema(JOB_STATUSES),
    waits_for: Type.Union([enumSchema(WAITS), Type.Null()], {
      description: "Null: it has ended, or its delivery is under way.",
    }),
    detail: Type.String({ description: "The same for people." }),
    failure_class: Type.Optional(enumSchema(FAILURE_CLASSES, "Why it failed, in one word for programs.")),
    estimated_at: Type.Optional(
      Type.String({ format: "date-time", description: "When it is tried next, as far as that can be foreseen." }),
    ),
    ahead: Type.Optional(Type.Integer({ description: "Jobs of the tenant on this channel that are before it." })),
    attempts: Type.Array(JobAttempt, { description: "The latest tries, oldest first; at most 20." }),
  },
  { $id: "JobExplanation" },
);

/** `GET /v1/jobs/{job_id}/explain`: why a job waits, for how long, and the result of each try. */
export function explainEndpoint(ports: ExplainPorts): Endpoint {
  return tenantEndpoint({
    method: "GET",
    path: "/v1/jobs/:id/explain",
    name: "job_explain",
    operation: "explainJob",
    tag: "Jobs",
    summary: "Why a job waits, and how each of its tries ended",
    description:
      "Reasons known to the delivering process alone (a pace, an unavailable mail server) are missing if that process does not answer at once; `waits_for` is then `turn`.",
    params: { id: jobIdOfTenant },
    answers: {
      200: {
        description: "The explanation.",
        schema: Explanation,
        examples: [
          {
            job_id: EXAMPLE_JOB_ID,
            status: "running",
            waits_for: "retry",
            detail: "it waits for its next try: the last one failed for now",
            estimated_at: "2026-11-21T07:29:59Z",
            attempts: [
              {
                at: "2026-11-21T07:29:41Z",
                outcome: "retry",
                relay: "mx.example.com:25",
                reply: "451 4.7.1 try again later",
                ms: 812,
                failure_class: "throttled",
                next_attempt_at: "2026-11-21T07:29:59Z",
              },
            ],
          },
        ],
      },
    },
    fails: { 404: NO_SUCH_JOB },
    async handle({ tenant, params: { id } }) {
      if (!isJobId(id)) throw noSuch("job");
      const waiting = await ports.queue.waitingJob(tenant, id);
      const record = await ports.queue.job(tenant, id);
      const stored = record === null || isFinal(record.status) ? await ports.eventStore.job(tenant.tenantId, id) : null;
      // A job that was retried has ended again, and that is not recorded yet.
      const isNewer = record !== null && record.began !== stored?.began;
      const job = (isNewer ? record : stored) ?? record;
      if (job === null) throw noSuch("job");
      const why = isFinal(job.status) ? ended(job) : await explainWait(ports, { tenant, job, waiting });
      const attempts = (job.tries ?? []).map((each) => shownAttempt(job.channel, each));
      const failed = failureClassOfJob(job);
      const shown = {
        job_id: job.jobId,
        status: job.status,
        ...why,
        ...(failed !== null && { failure_class: failed }),
      };
      return reply(200, { ...shown, attempts });
    },
  });
}

const DETAILS: Readonly<Record<WaitsFor, string>> = {
  turn: "its turn: other jobs are before it",
  plan_pace: "the pace of your plan: so many deliveries a second, and no more",
  reputation:
    "the slower pace of your e-mail: too much of it bounced or was reported as spam (docs/reputation.md); an operator can end that",
  warm_up: "another day: your sender is new, and has sent what it may send today",
  destination_pace: "the recipient's mail server, which takes mail more slowly than it comes",
  throttled: "the provider, which asks your sender to go slower",
  relay_away: "its mail server or provider, which does not answer; it is held, and no try is spent",
  schedule: "the time that it is scheduled for",
  retry: "its next try: the last one failed for now",
  paused: "an operator, who has paused your deliveries on this channel",
};

interface Why {
  readonly waits_for: WaitsFor | null;
  readonly detail: string;
  readonly estimated_at?: string;
  readonly ahead?: number;
}

function ended({ status, result }: JobRecord): Why {
  const topic = status === "suppressed" ? result?.["topic"] : undefined;
  const about = typeof topic === "string" ? `, by a suppression for the topic "${topic}"` : "";
  return { waits_for: null, detail: `it has ended: ${status}${about}` };
}

interface Unfinished {
  readonly tenant: Tenant;
  readonly job: JobRecord;
  readonly waiting: QueuedJobSummary | null;
}

/** Explains the first obstacle: an operator's pause, then a scheduled time, then the owner's answer. */
async function explainWait(ports: ExplainPorts, { tenant, job, waiting }: Unfinished): Promise<Why> {
  const { channel, jobId } = job;
  if (tenant.steering?.paused.has(channel) === true) return waits("paused", null);
  const dueAtMs = waiting?.nextAttemptMs ?? null;
  if (dueAtMs !== null) return waits(parkedFor(job.tries ?? [], waiting), dueAtMs);
  const answer = await asked(ports, tenant, job);
  if (answer?.waitsFor === null) return { waits_for: null, detail: "its delivery is under way" };
  const ahead = await ports.queue.jobsAhead(tenant, channel, jobId);
  const waitsFor = namePace(answer?.waitsFor ?? "turn", tenant, channel);
  const nowMs = ports.clock.nowMs();
  const why = waits(waitsFor, estimateMs({ tenant, waitsFor, forMs: answer?.forMs ?? null, ahead, channel, nowMs }));
  if (answer === null && (await isOwnerless(ports, tenant))) {
    return { ...why, detail: NO_PROCESS, ...(ahead !== null && { ahead }) };
  }
  // The server's own words explain best why it is unavailable.
  const detail = answer?.why ? `${why.detail}: ${answer.why}` : why.detail;
  return { ...why, detail, ...(ahead !== null && { ahead }) };
}

/** The process that delivers knows the pace, but not the reason for it. */
function namePace(waitsFor: WaitsFor, tenant: Tenant, channel: ChannelName): WaitsFor {
  const isSlowed = paceFor(tenant, channel) !== tenant.plan.deliveriesPerSecond;
  return waitsFor === "plan_pace" && isSlowed ? "reputation" : waitsFor;
}

/** Returns the reason why a job waits for a set time. */
function parkedFor(tries: readonly Attempt[], waiting: QueuedJobSummary | null): WaitsFor {
  const last = tries.at(-1);
  if (last?.outcome === "snooze") return last.for ?? "retry";
  const isScheduled = waiting !== null && waiting.dueMs !== null;
  return last === undefined && isScheduled ? "schedule" : "retry";
}

/** Null where the owner does not answer. */
async function asked({ questions }: ExplainPorts, tenant: Tenant, job: JobRecord): Promise<OwnersAnswer | null> {
  const { tenantId, shard } = tenant;
  try {
    return await questions.ask(shard, { tenantId, channel: job.channel, jobId: job.jobId });
  } catch (error) {
    if (isOutage(error)) return null;
    throw error;
  }
}

/** Whether no living process delivers the jobs in the tenant's shard. */
async function isOwnerless({ processStatuses }: ExplainPorts, { shard }: Tenant): Promise<boolean> {
  const { statuses } = await processStatuses.statuses();
  return ownerlessShards(statuses, "dispatcher", shard + 1).includes(shard);
}

const NO_PROCESS = "it waits for a process that delivers: none is running, and it goes on when one starts";

interface Estimate {
  readonly tenant: Tenant;
  readonly waitsFor: WaitsFor;
  readonly forMs: number | null;
  readonly ahead: number | null;
  readonly channel: string;
  readonly nowMs: number;
}

/** Estimates the delivery time (unix ms); null if it cannot be estimated. */
function estimateMs({ tenant, waitsFor, forMs, ahead, channel, nowMs }: Estimate): number | null {
  const deliveriesPerSecond = paceFor(tenant, channel);
  const isPaced = waitsFor === "plan_pace" || waitsFor === "reputation";
  if (isPaced && deliveriesPerSecond !== null && ahead !== null) {
    return nowMs + (forMs ?? 0) + (ahead * 1_000) / deliveriesPerSecond;
  }
  if (waitsFor === "throttled" && forMs !== null) return nowMs + forMs;
  if (waitsFor !== "warm_up" || ahead === null) return null;
  const tomorrowMs = nowMs + untilNextUtcDayMs(nowMs);
  let [day, left] = [utcDayAt(tomorrowMs), ahead];
  for (let days = 0; days < WARM_UP_DAYS_MAX; days += 1, day += 1) {
    const perDay = dailyAllowance(tenant, channel, day);
    if (perDay === null || left < perDay) return tomorrowMs + days * 86_400_000;
    left -= perDay;
  }
  return null;
}

/** The longest that a warm-up lasts. */
const WARM_UP_DAYS_MAX = 150;

function waits(waitsFor: WaitsFor, atMs: number | null): Why {
  const detail = `it waits for ${DETAILS[waitsFor]}`;
  return { waits_for: waitsFor, detail, ...(atMs !== null && { estimated_at: timeText(atMs) }) };
}
