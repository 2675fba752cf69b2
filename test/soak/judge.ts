import type { Arrival, Book, Message } from "./book.ts";
import type { EventAudit } from "./event-audit.ts";
import type { FaultLog, FaultSpan } from "./fault-log.ts";

/** The verdict on a promise. */
export interface Verdict {
  readonly promise: string;
  /** The number of checked items. */
  readonly checked: number;
  /** The violations, in words. */
  readonly broken: readonly string[];
  /** Further figures. */
  readonly note: string;
}

/** A job without a final event, as the service describes it. */
export interface AskedJob {
  readonly status: string;
  readonly result: string;
  /** The reason for its wait; null: it has ended, or the service does not know it. */
  readonly waitsFor: string | null;
}

export interface Evidence {
  readonly book: Book;
  readonly events: EventAudit;
  readonly faults: FaultLog;
  /** Each accepted job without a final event, by its id. */
  readonly asked: ReadonlyMap<string, AskedJob>;
}

/**
 * Deliveries in flight to one relay and outcomes not yet stored: the number that one process may repeat after its
 * death.
 */
const REPEATS_OF_A_PROCESS = 48 + 256;
/** Chat is retried only after the provider had ten minutes to report. */
const CHAT_SILENCE_MS = 590_000;
const GOOGLE_REFUSES = /did not accept the service account/;
const GOOGLE_SKEW_MS = 300_000;
/** A scheduled message may be early by the difference of two clocks of one machine, and their rounding. */
const EARLY_MS = 1_000;

/**
 * Checks all promises against the book-keeper's records. `dispatchers`: processes that deliver, for the bound of
 * repeats.
 */
export function judge(evidence: Evidence, dispatchers: number): readonly Verdict[] {
  return [
    lost(evidence),
    handedOver(evidence),
    ...repeats(evidence, dispatchers),
    invented(evidence),
    onceUnderKey(evidence),
    scheduled(evidence),
    fallbacks(evidence),
    suppressed(evidence),
    ends(evidence),
    once(evidence),
    confirmed(evidence),
    ...told(evidence),
    backwards(evidence),
  ];
}

function lost({ book, events, faults, asked }: Evidence): Verdict {
  const broken: string[] = [];
  let waiting = 0;
  const accepted = book.messages.filter(({ fate }) => fate === "accepted");
  for (const message of accepted) {
    const jobId = message.jobId ?? "";
    if (events.isOver(jobId)) continue;
    const said = asked.get(jobId);
    if (said !== undefined && ENDED.has(said.status) && message.aim === "update") continue;
    const waitsFor = said?.waitsFor ?? "";
    if (LAWFUL_WAITS.has(waitsFor)) waiting += 1;
    // A slow clock interpreted its time.
    else if (waitsFor === "schedule" && findTimeError(message, faults) > 0) waiting += 1;
    // Its message is still being tried.
    else if (message.fallbackOf !== null && !events.isOver(message.fallbackOf.jobId ?? "")) waiting += 1;
    else broken.push(`${describeMessage(message)}: ${said === undefined ? "nobody knows it" : JSON.stringify(said)}`);
  }
  const note = waiting === 0 ? "" : `${waiting} still wait for their next try or their time`;
  return { promise: "nothing accepted is lost", checked: accepted.length, broken, note };
}

const ENDED = new Set(["success", "failed", "suppressed"]);
/** Waits that the soak's own refusals cause, and that may outlast it. */
const LAWFUL_WAITS = new Set(["retry", "throttled", "destination_pace"]);

/** Messages with a sent event have arrived. Apple's passes arrive nowhere: their file is the answer. */
function handedOver({ book, events }: Evidence): Verdict {
  const sent = book.messages.filter(
    ({ jobId, channel }) => jobId !== null && channel !== "wallet" && events.has(jobId, "sent"),
  );
  const broken = sent.filter(({ seq }) => !book.arrivals.has(seq)).map(describeMessage);
  return { promise: "what is called sent has arrived", checked: sent.length, broken, note: "" };
}

function repeats({ book, faults }: Evidence, dispatchers: number): readonly Verdict[] {
  const broken: string[] = [];
  const causes = new Map<FaultSpan | "unanswered", number>();
  for (const [seq, arrivals] of book.arrivals) {
    for (let at = 1; at < arrivals.length; at += 1) {
      const cause = findCause(book.messages[seq], [arrivals[at - 1], arrivals[at]], faults);
      if (cause !== null) causes.set(cause, (causes.get(cause) ?? 0) + 1);
      else broken.push(repeatText(book.messages[seq], arrivals, faults));
    }
  }
  const crowded = Array.from(causes).filter(
    ([cause, count]) =>
      cause !== "unanswered" && cause.excuse !== "unanswered" && count > REPEATS_OF_A_PROCESS * dispatchers,
  );
  const byKind = Map.groupBy(causes, ([cause]) => (cause === "unanswered" ? "no answer" : cause.kind));
  const note = Array.from(byKind, ([kind, all]) => `${all.reduce((sum, [, count]) => sum + count, 0)} by ${kind}`).join(
    ", ",
  );
  const explained = Array.from(causes.values()).reduce((sum, count) => sum + count, 0);
  return [
    {
      promise: "nothing is sent twice without a cause",
      checked: book.arrivals.size,
      broken,
      note: note || "none twice",
    },
    {
      promise: "a process that dies repeats no more than it may",
      checked: explained,
      broken: crowded.map(([cause, count]) => `${count} after ${cause === "unanswered" ? "" : spanText(cause)}`),
      note: "",
    },
  ];
}

function findCause(
  message: Message | undefined,
  [first, again]: readonly [Arrival | undefined, Arrival | undefined],
  faults: FaultLog,
): FaultSpan | "unanswered" | null {
  if (message === undefined || first === undefined || again === undefined) return null;
  // Another job: the request itself was accepted twice.
  if (first.jobId !== again.jobId) return null;
  const waitedMs = again.atMs - first.atMs;
  if (first.isUnanswered && (message.channel !== "whatsapp" || waitedMs >= CHAT_SILENCE_MS)) return "unanswered";
  return faults.excuseFor(message.channel, first.atMs, again.atMs);
}

/** Messages from nowhere: never requested, or refused. */
function invented({ book, events }: Evidence): Verdict {
  const broken: string[] = [];
  for (const [seq, arrivals] of book.arrivals) {
    const message = book.messages[seq];
    if (message === undefined) broken.push(`message ${seq}, which nobody asked for`);
    else if (message.fate === "refused") broken.push(`${describeMessage(message)}, which was refused`);
    else if (arrivals.some(({ jobId }) => jobId !== null && message.jobId !== null && jobId !== message.jobId)) {
      broken.push(`${describeMessage(message)}, under ${arrivals.map(({ jobId }) => jobId).join(", ")}`);
    }
  }
  const unknown = Map.groupBy(
    Array.from(events.jobs).filter(([jobId]) => !book.byJob.has(jobId)),
    ([, { tenant }]) => tenant,
  );
  const open = Map.groupBy(
    book.messages.filter(({ fate }) => fate === "unknown" || fate === "asked"),
    ({ tenant }) => tenant,
  );
  for (const [tenant, jobs] of unknown) {
    const most = open.get(tenant)?.length ?? 0;
    if (jobs.length > most) broken.push(`${jobs.length} jobs of ${tenant} beside ${most} requests without an answer`);
  }
  return { promise: "nothing comes from nowhere", checked: book.arrivals.size + events.jobs.size, broken, note: "" };
}

function onceUnderKey({ book }: Evidence): Verdict {
  const broken = book.messages
    .filter(({ otherJobIds }) => otherJobIds !== null)
    .map((message) => `${describeMessage(message)} and ${message.otherJobIds?.join(", ")}`);
  const checked = book.messages.reduce((sum, { fate }) => sum + Number(fate === "accepted"), 0);
  return { promise: "an Idempotency-Key makes one job", checked, broken, note: "" };
}

function scheduled({ book, faults }: Evidence): Verdict {
  const broken: string[] = [];
  const all = book.messages.filter(({ dueMs, canceledMs }) => dueMs > 0 || canceledMs > 0);
  for (const message of all) {
    const [first] = book.arrivals.get(message.seq) ?? [];
    if (first === undefined) continue;
    if (message.canceledMs > 0) {
      broken.push(
        `${describeMessage(message)} was cancelled at ${formatTime(message.canceledMs)} and came at ${formatTime(first.atMs)}`,
      );
    } else if (first.atMs < message.dueMs - EARLY_MS - findTimeError(message, faults)) {
      broken.push(
        `${describeMessage(message)} was for ${formatTime(message.dueMs)} and came at ${formatTime(first.atMs)}`,
      );
    }
  }
  const canceled = all.filter(({ canceledMs }) => canceledMs > 0).length;
  const note = `${canceled} cancelled`;
  return { promise: "scheduled messages come in time, cancelled ones not at all", checked: all.length, broken, note };
}

/** The clock of the receiving process defines a wall-clock time. Later steps do not count. */
function findTimeError({ timedMs }: Message, faults: FaultLog): number {
  return Math.max(0, ...timedMs.map((atMs) => faults.timeErrorMs(atMs)));
}

/** A fallback behind a message that was sent in time is not sent. */
function fallbacks({ book, events, faults }: Evidence): Verdict {
  const all = book.messages.filter(({ fallbackOf, fate }) => fallbackOf !== null && fate === "accepted");
  const broken: string[] = [];
  for (const message of all) {
    const jobId = message.fallbackOf?.jobId ?? "";
    const sentMs = events.jobs.get(jobId)?.sentMs ?? Number.POSITIVE_INFINITY;
    const isReceived = !events.has(jobId, "bounced") && !events.has(jobId, "failed");
    const isInTime = sentMs < message.dueMs - EARLY_MS - findTimeError(message, faults);
    if (isReceived && isInTime && book.arrivals.has(message.seq))
      broken.push(`${describeMessage(message)} stood behind job ${jobId}, which was sent at ${formatTime(sentMs)}`);
  }
  const sent = all.filter(({ seq }) => book.arrivals.has(seq)).length;
  return { promise: "a fallback is sent only where it is needed", checked: all.length, broken, note: `${sent} sent` };
}

function suppressed({ book, events }: Evidence): Verdict {
  const all = book.messages.filter(({ aim, fate }) => aim === "suppressed" && fate === "accepted");
  const broken = all
    .filter(({ seq, jobId }) => book.arrivals.has(seq) || !events.has(jobId ?? "", "suppressed"))
    .map(
      (message) =>
        `${describeMessage(message)} ${book.arrivals.has(message.seq) ? "arrived" : "has no event that says so"}`,
    );
  return { promise: "nothing is sent to who is suppressed", checked: all.length, broken, note: "" };
}

/** A good message that was accepted ends as a success, whatever faults occur meanwhile. */
function ends({ book, events, faults }: Evidence): Verdict {
  const all = book.messages.filter(({ aim, fate }) => aim === "sent" && fate === "accepted");
  const broken: string[] = [];
  for (const message of all) {
    const jobId = message.jobId ?? "";
    if (message.canceledMs !== 0 || !events.has(jobId, "failed") || events.has(jobId, "sent")) continue;
    const error = events.jobs.get(jobId)?.error ?? "";
    // Google refuses an assertion whose time is more than some minutes off; the pass's token is given back.
    if (GOOGLE_REFUSES.test(error) && faults.timeErrorMs(message.askedMs) > GOOGLE_SKEW_MS) continue;
    broken.push(`${describeMessage(message)}: ${error}`);
  }
  return { promise: "good messages end as a success", checked: all.length, broken, note: "" };
}

function once({ events }: Evidence): Verdict {
  const note = `${events.jobs.size} jobs`;
  return { promise: "every event once, in order", checked: events.total, broken: events.repeated, note };
}

function confirmed({ book, events }: Evidence): Verdict {
  const all = Array.from(book.confirmed).flatMap((seq) => book.messages[seq] ?? []);
  const broken = all.flatMap((one) => {
    if (one.jobId === null || events.has(one.jobId, "delivered") || events.has(one.jobId, "bounced")) return [];
    return [describeMessage(one)];
  });
  return { promise: "every report of a provider becomes an event", checked: all.length, broken, note: "" };
}

function told({ book, events }: Evidence): readonly Verdict[] {
  const promise = "webhooks are told every event, in order";
  const told = Array.from(book.told.values());
  const checked = told.reduce((sum, { taken }) => sum + taken.size, 0);
  const repeated = told.reduce((sum, one) => sum + one.repeats, 0);
  const disordered = book.misdeeds.filter((one) => one.promise === promise).map(({ what }) => what);
  const invented = events.invented().map((what) => `told and not in the export: ${what}`);
  const missed = events.untold.map((what) => `not told: ${what}`);
  const note = `${repeated} told again`;
  return [{ promise, checked, broken: [...disordered, ...missed, ...invented], note }];
}

function backwards({ book }: Evidence): Verdict {
  const broken = book.misdeeds.filter(({ promise }) => promise === "no status goes back").map(({ what }) => what);
  return { promise: "no status goes back", checked: book.polls, broken, note: "" };
}

function describeMessage({ seq, tenant, channel, jobId, aim }: Message): string {
  return `message ${seq} (${channel} of ${tenant}, ${aim}, job ${jobId ?? "unknown"})`;
}

function repeatText(message: Message | undefined, arrivals: readonly Arrival[], faults: FaultLog): string {
  const times = arrivals.map(({ atMs, jobId }) => `${formatTime(atMs)}${jobId === null ? "" : ` as ${jobId}`}`);
  const near = faults.around(arrivals[0]?.atMs ?? 0).map(spanText);
  const name = message === undefined ? "a message" : describeMessage(message);
  return `${name} at ${times.join(" and ")}; before and meanwhile: ${near.join("; ") || "nothing"}`;
}

export function spanText({ kind, target, fromMs, toMs }: FaultSpan): string {
  return `${kind} (${target}) ${formatTime(fromMs)}-${formatTime(toMs)}`;
}

function formatTime(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 23) : "…";
}
