import { sleep, type Timer } from "../../../domain/clock.ts";
import { type Health, HealthWatch } from "../../../domain/health.ts";
import type { DeliveryReport } from "../../../domain/jobs/report.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import { maskedText } from "../../../domain/texts/masked.ts";
import { failureReport, printable } from "../failure-report.ts";
import { furtherRecipient, type MailedJob } from "../message-id.ts";
import { type FollowerNote, LogFollower } from "./log-follower.ts";
import type { LogPlace } from "./log-place.ts";
import { PlaceStore } from "./place-store.ts";
import { type PostfixLogLine, parsePostfixLogLine } from "./postfix-log-line.ts";
import { PostfixQueue, parseDeferrals, type QueueChanges, type QueuedMail, UNKNOWN_TENANT } from "./postfix-queue.ts";

export interface MailLogOptions extends RuntimePorts {
  /** The path of Postfix's log. */
  readonly path: string;
  /** Folder in which the position is stored. */
  readonly home: string;
  /** Resolves when the report need not be repeated. */
  onReport(report: DeliveryReport): Promise<void>;
  /** Finds the job's tenant, or null. Rejects with `UnavailableError` or `TransportError`. */
  readonly owners: { findOwner(jobId: string): Promise<string | null> };
}

/**
 * Reads the MTA's log and reports the outcomes of the jobs' messages.
 *
 * Invariants:
 * M1. The stored position is never after a line whose report was not taken. After a crash lines are read again; the
 *     receiver of the reports discards duplicates.
 * M2. The map from queue ids to messages is stored together with the position, so a line finds its message however long
 *     ago that was logged.
 * M3. At most `REPORTS_MAX` reports and `PIECES_MAX` chunks of the log are in flight. If reports are not taken, reading
 *     pauses; the log itself is the buffer.
 */
export class MailLog {
  private readonly stopping = new AbortController();
  private running: {
    readonly store: PlaceStore;
    readonly postfixQueue: PostfixQueue;
    readonly follower: LogFollower;
  } | null = null;
  private stopped: Promise<void> | null = null;
  private gauging: Timer | null = null;
  private readonly watch: HealthWatch;
  /** When the next unreadable line is logged. */
  private nextUnreadableMs = Number.NEGATIVE_INFINITY;

  /** The chunks of the log with reports that are not taken yet, oldest first. */
  private readonly pieces: { readonly place: LogPlace; readonly changes: QueueChanges; isTaken: boolean }[] = [];
  private reportsInFlight = 0;
  private onProgress = Promise.withResolvers<void>();
  /** Changes that could not be stored yet. */
  private unsaved: QueueChanges = new Map();

  constructor(private readonly options: MailLogOptions) {
    const { clock, random, telemetry, path } = options;
    const messages = {
      down: `the mail log ${path} cannot be read: what becomes of mail is not known meanwhile`,
      up: `the mail log ${path} is read again`,
    };
    this.watch = new HealthWatch({ clock, random, telemetry, gauge: "mail_log_up", messages });
  }

  /** Whether the log can be read. */
  health(): Health {
    return this.watch.health;
  }

  /** Continues at the stored position. Throws if positions cannot be stored. */
  start(): void {
    if (this.running !== null || this.stopping.signal.aborted) return;
    const { home, path, clock } = this.options;
    const store = PlaceStore.open(home, path);
    const postfixQueue = new PostfixQueue(store.queued());
    const follower = new LogFollower({
      path,
      place: store.place(),
      clock,
      onLines: (lines, place) => this.take(lines, place),
      onNote: (note) => this.note(note),
    });
    this.running = { store, postfixQueue, follower };
    follower.start();
    // An alert on its growth needs a value to grow from.
    this.options.telemetry.count("mail_log_lines_unreadable", {}, 0);
    this.gaugeLag(follower);
  }

  /** Stops reading. Reports not taken by now are read again after the next start. Safe to repeat. */
  stop(): Promise<void> {
    this.stopped ??= this.shutDown();
    return this.stopped;
  }

  private async shutDown(): Promise<void> {
    this.stopping.abort();
    this.gauging?.cancel();
    this.progress();
    await this.running?.follower.stop();
    this.running?.store.close();
  }

  /** Never rejects. Resolves when the next lines may be read. */
  private async take(lines: readonly string[], place: LogPlace): Promise<void> {
    if (this.running === null) return;
    const { postfixQueue } = this.running;
    this.options.telemetry.count("mail_log_lines", {}, lines.length);
    const reports: DeliveryReport[] = [];
    for (const text of lines) {
      const line = parsePostfixLogLine(text);
      if (line?.kind === "unreadable") this.noteUnreadable(text);
      const report = line === null ? null : this.interpret(line, postfixQueue);
      if (report !== null) reports.push(...report);
    }
    const piece = { place, changes: postfixQueue.takeChanges(), isTaken: false };
    this.pieces.push(piece);
    this.reportsInFlight += reports.length;
    void this.report(reports).then(() => {
      piece.isTaken = true;
      this.save();
    });
    while (this.reportsInFlight > REPORTS_MAX || this.pieces.length > PIECES_MAX) {
      if (this.stopping.signal.aborted) return;
      await this.onProgress.promise;
    }
  }

  /** Resolves when all reports are taken; never, if this is stopped first. */
  private async report(reports: readonly DeliveryReport[]): Promise<void> {
    await Promise.all(
      reports.map(async (report) => {
        await this.reportUntilTaken(report);
        this.reportsInFlight -= 1;
        this.progress();
      }),
    );
  }

  private async reportUntilTaken(report: DeliveryReport): Promise<void> {
    const { onReport, owners, clock, telemetry } = this.options;
    while (true) {
      try {
        if (report.tenantId !== UNKNOWN_TENANT) return await onReport(report);
        const tenantId = await owners.findOwner(report.jobId);
        return tenantId === null ? undefined : await onReport({ ...report, tenantId });
      } catch (error) {
        telemetry.log("error", "a report of the mail log was not taken and is repeated", { error: String(error) });
      }
      await sleep(clock, REPEAT_MS, this.stopping.signal);
    }
  }

  /** Stores the position after the last chunk up to which all reports are taken. */
  private save(): void {
    // After a stop, the receiver may resolve without having taken the reports.
    if (this.running === null || this.stopping.signal.aborted) return;
    const changes = new Map(this.unsaved);
    let place: LogPlace | null = null;
    while (this.pieces[0]?.isTaken === true) {
      const piece = this.pieces.shift();
      for (const [key, mail] of piece?.changes ?? []) changes.set(key, mail);
      place = piece?.place ?? place;
    }
    if (place === null) return;
    try {
      this.running.store.save(place, changes);
      this.unsaved = new Map();
    } catch (error) {
      // The disk may be full: the next chunk's position covers this one too.
      this.unsaved = changes;
      this.options.telemetry.log("error", "the place in the mail log was not stored", { error: String(error) });
    }
    this.progress();
  }

  private progress(): void {
    this.onProgress.resolve();
    this.onProgress = Promise.withResolvers<void>();
  }

  private interpret(line: PostfixLogLine, postfixQueue: PostfixQueue): readonly DeliveryReport[] | null {
    const nowMs = this.options.clock.nowMs();
    switch (line.kind) {
      case "named":
        postfixQueue.name(line, line.messageId, nowMs);
        return null;
      case "returns_to":
        postfixQueue.returnsTo(line, line.jobId);
        return null;
      case "removed":
        postfixQueue.remove(line);
        return null;
      case "unreadable":
      case "handed_over":
      case "notified":
        return null;
      default:
        return this.outcome(line, postfixQueue, nowMs);
    }
  }

  /** Counts unreadable lines and logs a few of them, because every line may have a new form from now on. */
  private noteUnreadable(text: string): void {
    const { clock, telemetry, path } = this.options;
    telemetry.count("mail_log_lines_unreadable");
    const nowMs = clock.monotonicMs();
    if (nowMs < this.nextUnreadableMs) return;
    this.nextUnreadableMs = nowMs + UNREADABLE_EVERY_MS;
    const message =
      "a line of the mail log tells an outcome in a form that is not known: what became of that mail is not recorded";
    telemetry.log("warn", message, { path, line: maskedText(text) });
  }

  private outcome(line: OutcomeLine, postfixQueue: PostfixQueue, nowMs: number): readonly DeliveryReport[] | null {
    const mail = postfixQueue.find(line);
    this.options.telemetry.count("mail_log_outcomes", { message: classifyOwner(mail) });
    if (mail === null || mail.job === null) return null;
    if (line.kind === "deferred") {
      postfixQueue.defer(line, line.recipient, printable(line.text), nowMs);
      return null;
    }
    // A filter on this machine accepted the message and has requeued it already.
    const requeuedAs = line.kind === "delivered" ? REQUEUED.exec(line.said)?.[1] : undefined;
    if (requeuedAs !== undefined && postfixQueue.holds(requeuedAs, mail.job)) return null;
    const { jobId, tenantId } = mail.job;
    if (line.kind !== "expired") {
      postfixQueue.settle(line, line.recipient, nowMs);
      return [{ jobId, tenantId, ...about(mail.job, line.recipient, toVerdict(line)) }];
    }
    // Postfix names no recipient: the message expired for those deferred last.
    const putOff = parseDeferrals(mail);
    return Array.from(putOff.size === 0 ? [["", null] as const] : putOff, ([recipient, reason]) => ({
      jobId,
      tenantId,
      ...about(mail.job, recipient, expiry(reason)),
    }));
  }

  private note(note: FollowerNote): void {
    const { telemetry, path } = this.options;
    if (note.kind === "readable") return this.watch.succeeded();
    telemetry.count("mail_log_notes", { note: note.kind });
    // Tried several times a second, reported once.
    if (note.kind === "unreadable") return this.watch.failed(note.error);
    telemetry.log(note.kind === "lost" ? "error" : "info", NOTES[note.kind], { path });
  }

  private gaugeLag(follower: LogFollower): void {
    const { clock, telemetry } = this.options;
    this.gauging = clock.setTimer(GAUGE_MS, () => {
      void follower.lag().then(({ bytes, seconds }) => {
        telemetry.gauge("mail_log_lag_bytes", bytes);
        telemetry.gauge("mail_log_lag_seconds", seconds);
        if (!this.stopping.signal.aborted) this.gaugeLag(follower);
      });
    });
  }
}

type OutcomeLine = Extract<PostfixLogLine, { kind: "delivered" | "bounced" | "deferred" | "expired" }>;

const REPORTS_MAX = 1_000;
const PIECES_MAX = 64;
const REPEAT_MS = 1_000;
const GAUGE_MS = 1_000;
const UNREADABLE_EVERY_MS = 60_000;

/** Postfix's reply when it has accepted a message. */
const REQUEUED = /\bqueued as (\w{6,32})\b/;

const NOTES = {
  lost: "the mail log was rotated out of sight: what it said in the meantime is lost",
  truncated: "the mail log was emptied",
  rotated: "the mail log was rotated",
} as const;

function classifyOwner(mail: QueuedMail | null): "ours" | "foreign" | "unmatched" {
  if (mail === null) return "unmatched";
  return mail.job === null ? "foreign" : "ours";
}

type Verdict = Pick<DeliveryReport, "type" | "result" | "suppressRecipient">;

/** Names the recipient if it is not the job's own; "" stands for an unknown one. */
function about(job: MailedJob | null, recipient: string, verdict: Verdict): Verdict {
  const further = job === null || recipient === "" ? undefined : furtherRecipient(job, recipient);
  return further === undefined ? verdict : { ...verdict, result: { recipient: further, ...verdict.result } };
}

function toVerdict(line: Exclude<OutcomeLine, { kind: "deferred" | "expired" }>): Verdict {
  return line.kind === "bounced" ? failureReport(line) : { type: "delivered", result: {}, suppressRecipient: null };
}

function expiry(deferral: string | null): Verdict {
  const reason = deferral === null ? "" : `: ${deferral}`;
  const error = `it could not be delivered for as long as the mail server keeps trying${reason}`;
  return { type: "failed", result: { error }, suppressRecipient: null };
}
