import { remember } from "../../../domain/remember.ts";
import { type MailedJob, parseMessageId } from "../message-id.ts";
import type { QueueRef } from "./postfix-log-line.ts";

/** A message in the MTA's queue. */
export interface QueuedMail {
  /** Null: not our message, for example a notification by Postfix itself. */
  readonly job: MailedJob | null;
  /** Reason of the last deferral, or null; for a message to several recipients, JSON text of the reasons by recipient. */
  readonly deferral: string | null;
  /** When the log last mentioned it (unix ms). */
  readonly seenMs: number;
}

/** Changes to the map since they were last taken, by key; null: the entry was removed. */
export type QueueChanges = ReadonlyMap<string, QueuedMail | null>;

/**
 * Maps each queue id to its message, as the log itself reports it. The client often gets its reply with the queue id
 * only after the delivery is logged, but the line that names the message always comes before that.
 *
 * Invariants:
 * Q1. A queue id that is named again refers only to the new message (short queue ids are inode numbers and are reused).
 * Q2. The map is bounded in entries and in age: the entry that the log has not mentioned for longest is dropped first.
 * Q3. A message that left the queue is still found for a while, because the log may show its hand-over to another local
 *     queue only after that queue has delivered it.
 */
export class PostfixQueue {
  private readonly entries: Map<string, QueuedMail>;
  /** The messages that left the queue most recently. */
  private readonly departed = new Map<string, QueuedMail>();
  private readonly instances = new Set<string>();
  private changes = new Map<string, QueuedMail | null>();

  constructor(known: Iterable<readonly [key: string, mail: QueuedMail]> = []) {
    this.entries = new Map(Array.from(known).sort(([, a], [, b]) => a.seenMs - b.seenMs));
    for (const key of this.entries.keys()) this.instances.add(extractInstance(key));
  }

  get size(): number {
    return this.entries.size;
  }

  name(ref: QueueRef, messageId: string, nowMs: number): void {
    const key = formatKey(ref);
    if (this.instances.size < INSTANCES_MAX) this.instances.add(ref.instance);
    this.departed.delete(key);
    this.put(key, { job: parseMessageId(messageId), deferral: null, seenMs: nowMs });
    this.forgetOldest(nowMs);
  }

  /**
   * Records the return path of a message that is sent unchanged: it names the job, but no tenant, and the Message-ID is
   * the sender's own.
   */
  returnsTo(ref: QueueRef, jobId: string): void {
    const mail = this.entries.get(formatKey(ref));
    if (mail?.job === null) this.put(formatKey(ref), { ...mail, job: { jobId, tenantId: UNKNOWN_TENANT } });
  }

  find(ref: QueueRef): QueuedMail | null {
    const key = formatKey(ref);
    return this.entries.get(key) ?? this.departed.get(key) ?? null;
  }

  /** Records that the message stays in the queue for the recipient, and why. */
  defer(ref: QueueRef, recipient: string, reason: string, nowMs: number): void {
    const mail = this.entries.get(formatKey(ref));
    if (mail === undefined) return;
    if (mail.job?.mark === undefined) return this.put(formatKey(ref), { ...mail, deferral: reason, seenMs: nowMs });
    const reasons = parseDeferrals(mail);
    if (reasons.size >= DEFERRALS_MAX && !reasons.has(recipient)) return;
    reasons.set(recipient, reason.slice(0, REASON_CHARS_MAX));
    this.put(formatKey(ref), { ...mail, deferral: JSON.stringify([...reasons]), seenMs: nowMs });
  }

  /** Records that the message is done with the recipient. */
  settle(ref: QueueRef, recipient: string, nowMs: number): void {
    const mail = this.entries.get(formatKey(ref));
    if (mail?.job?.mark === undefined || mail.deferral === null) return;
    const reasons = parseDeferrals(mail);
    if (!reasons.delete(recipient)) return;
    this.put(formatKey(ref), {
      ...mail,
      deferral: reasons.size === 0 ? null : JSON.stringify([...reasons]),
      seenMs: nowMs,
    });
  }

  remove(ref: QueueRef): void {
    const key = formatKey(ref);
    const mail = this.entries.get(key);
    if (mail === undefined) return;
    this.entries.delete(key);
    this.changes.set(key, null);
    remember(this.departed, { key, value: mail, max: DEPARTED_MAX });
  }

  /** Whether a local queue of any instance has (or had a moment ago) the same job under this id. */
  holds(queueId: string, job: MailedJob): boolean {
    return Array.from(this.instances).some((instance) => this.find({ instance, queueId })?.job?.jobId === job.jobId);
  }

  takeChanges(): QueueChanges {
    const { changes } = this;
    this.changes = new Map();
    return changes;
  }

  private put(key: string, mail: QueuedMail): void {
    // Deleted first, which keeps the map in the order of `seenMs`.
    this.entries.delete(key);
    this.entries.set(key, mail);
    this.changes.set(key, mail);
  }

  private forgetOldest(nowMs: number): void {
    for (const [key, { seenMs }] of this.entries) {
      if (this.entries.size <= ENTRIES_MAX && nowMs - seenMs <= AGE_MS_MAX) return;
      this.entries.delete(key);
      this.changes.set(key, null);
    }
  }
}

/** Stands for the tenant of a job that is known only from its return path. */
export const UNKNOWN_TENANT = "";

/** Most deferred recipients of a message, and the length of a reason among several. */
const DEFERRALS_MAX = 50;
const REASON_CHARS_MAX = 300;

/** Returns the reasons for deferral by recipient. The job's own recipient, whose address is unknown here, is "". */
export function parseDeferrals({ job, deferral }: QueuedMail): Map<string, string | null> {
  if (job?.mark === undefined) return new Map([["", deferral]]);
  // Written by `defer`; a former release wrote the reason alone.
  if (deferral === null || !deferral.startsWith("[[")) return new Map();
  return new Map(JSON.parse(deferral) as [string, string][]);
}

/** At most about 40 MB, and ten minutes of mail at the rate of one Postfix. */
const ENTRIES_MAX = 100_000;
/** Twice the five days that Postfix keeps a message by default (postconf(5), maximal_queue_lifetime). */
const AGE_MS_MAX = 10 * 24 * 60 * 60 * 1000;
const DEPARTED_MAX = 10_000;
const INSTANCES_MAX = 32;

function formatKey({ instance, queueId }: QueueRef): string {
  return `${instance}/${queueId}`;
}

/** Extracts the instance's name, which contains no slash. */
function extractInstance(key: string): string {
  return key.slice(0, key.indexOf("/"));
}
