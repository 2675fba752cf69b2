import type { EventType } from "../../src/domain/jobs/event.ts";

export type SoakChannel = "email" | "whatsapp" | "wallet";

/**
 * The expected outcome of a message.
 *
 * - `sent`: it is good, so it ends as a success. `refused`: its recipient does not exist, so it fails or bounces.
 * - `suppressed`: its recipient was suppressed before it was sent. `update`: an update of an existing pass.
 * - `any`: it may end in every way, but it ends.
 */
export type Aim = "sent" | "refused" | "suppressed" | "update" | "any";

/**
 * The state of a request as its caller knows it. `asked`: no answer yet; `unknown`: there was none, or a 5xx, so it may
 * have been accepted or not.
 */
export type Fate = "asked" | "accepted" | "unknown" | "refused";

export interface Message {
  readonly seq: number;
  readonly tenant: string;
  readonly channel: SoakChannel;
  readonly aim: Aim;
  readonly askedMs: number;
  fate: Fate;
  jobId: string | null;
  /** The earliest time of its hand-over (unix ms); 0: at once. */
  dueMs: number;
  /** When the service received `dueMs`: a clock that was wrong then made the time wrong by as much. */
  timedMs: readonly number[];
  /** When the service answered that it is cancelled; 0: it is not. `NaN`: unknown. */
  canceledMs: number;
  /** In a fallback: the message that it stands behind. */
  fallbackOf: Message | null;
  /** A recipient without other senders, who can be erased; null: others may write to it. */
  recipient: string | null;
  /** Whether a pass is made for the e-mail and goes with it. */
  hasPass: boolean;
  /** Other job ids in answers to repeats under the same Idempotency-Key: there must be none. */
  otherJobIds: readonly string[] | null;
}

/** A message that a provider's stand-in took. */
export interface Arrival {
  readonly atMs: number;
  /** The job that it names; null: this provider's messages name none. */
  readonly jobId: string | null;
  /** The stand-in swallowed it without an answer. */
  readonly isUnanswered: boolean;
}

/** An event as the export contains it. */
export interface ExportedEvent {
  readonly tenant_id: string;
  readonly event_id: number;
  readonly job_id: string;
  readonly channel: string;
  readonly event_type: EventType;
  readonly result: { readonly error?: string; readonly reason?: string };
}

/** A status that went back, or another violation that is visible at once. */
export interface Misdeed {
  readonly promise: string;
  readonly what: string;
}

/**
 * The book-keeper: requests to the service and its answers, arrivals at the providers, calls of webhooks and results of
 * polls. It lives outside of the service and does not rely on the service's own account of itself.
 */
export class Book {
  readonly messages: Message[] = [];
  readonly arrivals = new Map<number, Arrival[]>();
  readonly byJob = new Map<string, Message>();
  /** Messages whose delivery the mail server's log or the chat provider confirmed. */
  readonly confirmed = new Set<number>();
  readonly told = new Map<string, Told>();
  readonly misdeeds: Misdeed[] = [];
  /** Incoming texts that the service acknowledged, by the provider's ids. */
  readonly written = new Set<string>();
  /** Messages whose recipients were erased. */
  readonly erased = new Set<number>();
  /** How often an operator retried a failed job, by its id. */
  readonly retries = new Map<string, number>();
  private readonly polled = new Map<string, { rank: number; status: string }>();
  polls = 0;

  constructor(private readonly nowMs: () => number = Date.now) {}

  ask(tenant: string, channel: SoakChannel, aim: Aim = "sent"): Message {
    const message: Message = {
      seq: this.messages.length,
      tenant,
      channel,
      aim,
      askedMs: this.nowMs(),
      fate: "asked",
      jobId: null,
      dueMs: 0,
      timedMs: [],
      canceledMs: 0,
      fallbackOf: null,
      recipient: null,
      hasPass: false,
      otherJobIds: null,
    };
    this.messages.push(message);
    return message;
  }

  /** The answer to a send. Also notes a repeat under the same Idempotency-Key. */
  answered(message: Message, status: number, jobId: unknown): void {
    if (status === 202 && typeof jobId === "string") {
      if (message.jobId !== null && message.jobId !== jobId) {
        message.otherJobIds = [...(message.otherJobIds ?? []), jobId];
      }
      message.jobId ??= jobId;
      message.fate = "accepted";
      this.byJob.set(jobId, message);
      return;
    }
    if (message.fate === "accepted") return;
    // A refusal does not settle an earlier try without an answer.
    if (status >= 400 && status < 500 && message.fate === "asked") message.fate = "refused";
    else if (status < 400 || status >= 500) message.fate = "unknown";
  }

  arrived(seq: number, jobId: string | null, isUnanswered = false): void {
    const arrival = { atMs: this.nowMs(), jobId, isUnanswered };
    const earlier = this.arrivals.get(seq);
    if (earlier === undefined) this.arrivals.set(seq, [arrival]);
    else earlier.push(arrival);
  }

  /** Notes the status that a poll of a job returned. Polls of one job must not overlap. */
  polledJob(jobId: string, status: string): void {
    // A retried job is pending again.
    if (this.retries.has(jobId)) return;
    this.polls += 1;
    const rank = RANKS.indexOf(status === "failed" || status === "suppressed" ? "success" : status);
    const before = this.polled.get(jobId);
    if (before !== undefined && (rank < before.rank || (before.rank === FINAL && status !== before.status))) {
      this.misdeeds.push({ promise: "no status goes back", what: `job ${jobId}: ${before.status}, then ${status}` });
    }
    this.polled.set(jobId, { rank, status });
  }

  /** A webhook's receiver answered 2xx to a call with these events (ids in their order). */
  tookEvents(tenant: string, eventIds: readonly number[]): void {
    const told = this.told.get(tenant);
    if (told === undefined) return;
    for (const id of eventIds) {
      if (told.taken.has(id)) {
        told.repeats += 1;
        continue;
      }
      if (id < told.latest) {
        const what = `${tenant} was told of event ${id} after ${told.latest}`;
        this.misdeeds.push({ promise: "webhooks are told every event, in order", what });
      }
      told.taken.add(id);
      told.latest = Math.max(told.latest, id);
    }
  }

  misdeed(promise: string, what: string): void {
    this.misdeeds.push({ promise, what });
  }

  count(fate: Fate): number {
    return this.messages.reduce((sum, message) => sum + Number(message.fate === fate), 0);
  }
}

/** The events that a tenant's webhook received. */
export interface Told {
  /** It receives events behind this one. */
  readonly sinceEventId: number;
  readonly taken: Set<number>;
  latest: number;
  repeats: number;
}

const RANKS = ["pending", "running", "success"];
const FINAL = RANKS.length - 1;
