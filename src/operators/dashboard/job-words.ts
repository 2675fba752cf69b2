import type { JobAttempt, JobEvent, JobHistory, OperatorJob } from "../../../clients/typescript/generated.ts";
import type { Tone } from "./ui.tsx";
import { ago, channelName, counted } from "./words.ts";

/*
 * The history of a job in words.
 */

export const STATUSES = ["pending", "running", "success", "failed", "suppressed"] as const;

const SUPPRESSIONS: Readonly<Record<string, string>> = {
  unsubscribed: "the recipient has unsubscribed",
  bounced: "an earlier message to the recipient bounced",
  complained: "the recipient reported an earlier message as spam",
  erased: "the recipient was erased",
  manual: "an operator put the recipient on the suppression list",
};

export function suppressionWords(reason: string, topic: string | undefined): string {
  const words = SUPPRESSIONS[reason] ?? reason;
  return topic === undefined ? words : `${words} (topic: ${topic})`;
}

const OUTCOME_TONES: Readonly<Record<OperatorJob["outcome"], Tone>> = {
  pending: "busy",
  running: "busy",
  sent: "quiet",
  delivered: "good",
  bounced: "bad",
  complained: "warn",
  failed_later: "bad",
  failed: "bad",
  suppressed: "quiet",
};

/** Describes the outcome of a job for a list. */
export function shortOutcome({ outcome, channel }: Pick<OperatorJob, "outcome" | "channel">): Sentence {
  // There are no further reports on a pass once it is made.
  if (channel === "wallet" && outcome === "sent") return { tone: "good", text: "made" };
  return { tone: OUTCOME_TONES[outcome], text: outcome.replace("_", " ") };
}

const CAUSES = {
  recipient: "no such recipient",
  mailbox_full: "the mailbox is full",
  domain: "the domain takes no mail",
  refused: "refused: reputation, block list or policy",
  authentication: "SPF, DKIM or DMARC did not pass",
  throttled: "too much, too fast",
  content: "the message itself",
  sender: "the sender's account or credentials",
  unreachable: "no answer",
  purged: "purged by an operator",
  other: "another cause",
} as const;
export type Cause = keyof typeof CAUSES;

export const CAUSE_CHOICES = Object.entries(CAUSES).map(([value, label]) => ({ value, label }));

export function knownCause(word: string): Cause | undefined {
  return word in CAUSES ? (word as Cause) : undefined;
}

/** The class of a failure, in words. */
export function causeName(word: string): string {
  const cause = knownCause(word);
  return cause === undefined ? word : CAUSES[cause];
}

export interface Sentence {
  readonly tone: Tone;
  readonly text: string;
}

/** Describes the outcome of a job, or the reason why it waits. `isPaused`: an operator paused its tenant on its channel. */
export function describeOutcome(job: JobHistory, isPaused: boolean, nowMs: number): Sentence {
  switch (job.status) {
    case "pending":
    case "running":
      return { tone: "busy", text: waitingWords(job, isPaused, nowMs) };
    case "success":
      return describeSuccess(job);
    case "failed":
      return { tone: "bad", text: failureWords(job) };
    case "suppressed": {
      const reason = String(readMember(job.result, "reason") ?? "");
      const topic = readMember(job.result, "topic");
      return {
        tone: "warn",
        text: `Not sent: ${suppressionWords(reason, topic === undefined ? topic : String(topic))}.`,
      };
    }
  }
}

function waitingWords(job: JobHistory, isPaused: boolean, nowMs: number): string {
  const { history, next_attempt_at: next, status, channel } = job;
  if (isPaused) return `Waiting: an operator has paused ${channelName(channel)} for this tenant.`;
  const last = history.at(-1);
  const why = last?.reply === undefined ? "" : ` ${describeRelay(last)} said: ${ended(last.reply)}`;
  if (next !== undefined) return `Waiting for the next try, ${ago(next, nowMs)}.${why}`;
  if (status === "running") return `A delivery is on its way, or waits for its turn.${why}`;
  return `Waiting in the queue, since ${ago(job.created_at, nowMs).replace(/ ago$/, "")}.${why}`;
}

function describeSuccess({ channel, events, history }: JobHistory): Sentence {
  // Events about a copy do not concern the message's own recipient.
  const own = events.filter(({ result }) => !("recipient" in result));
  const bounced = own.find((event) => event.event_type === "bounced");
  if (bounced !== undefined) {
    return { tone: "bad", text: `Sent, and then it bounced: ${ended(bounced.result.diagnostic)}` };
  }
  const failed = own.find((event) => event.event_type === "failed");
  if (failed !== undefined) return { tone: "bad", text: `Sent, and then it failed: ${ended(failed.result.error)}` };
  const has = (type: JobEvent["event_type"]) => own.some(({ event_type }) => event_type === type);
  if (has("complained")) return { tone: "warn", text: "Delivered, and the recipient reported it as spam." };
  if (channel === "wallet") return { tone: "good", text: "The pass was made." };
  if (has("delivered") || has("read")) {
    const isOpened = events.some((event) => event.event_type === "opened" && event.result.machine !== true);
    return { tone: "good", text: `Delivered${has("read") ? " and read" : isOpened ? " and opened" : ""}.` };
  }
  const sent = history.find(({ outcome }) => outcome === "sent");
  const to = sent?.relay === undefined ? "the mail server or provider" : sent.relay;
  return { tone: "good", text: `Taken by ${to}. It has not reported the delivery yet.` };
}

function failureWords({ error, history, attempts, result }: JobHistory): string {
  const last = history.findLast(({ outcome }) => outcome === "failed") ?? history.at(-1);
  const why = error ?? String(readMember(result, "error") ?? "the reason is not known");
  const tries =
    attempts > 1 && !why.includes("attempts")
      ? ` After ${counted(attempts, "try", "tries")}, it is not tried again.`
      : "";
  const reply = last?.reply;
  // The error quotes the reply without the recipient.
  const isSaid = reply === undefined || why.includes(reply.slice(0, QUOTED_CHARS));
  return `It failed: ${ended(why)}${isSaid || last === undefined ? "" : ` ${describeRelay(last)} said: ${ended(reply)}`}${tries}`;
}

const QUOTED_CHARS = 9;

function readMember(value: object | undefined, name: string): unknown {
  return value === undefined ? undefined : Reflect.get(value, name);
}

function describeRelay({ relay }: JobAttempt): string {
  return relay ?? "The mail server or provider";
}

/** Ends the text with a full stop. */
function ended(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** One step in the life of a job. */
export interface Step {
  readonly at: string;
  readonly tone: Tone;
  readonly title: string;
  readonly detail: string | null;
}

/** Builds the timeline of a job: acceptance, tries and events, in the order of their times. */
export function buildTimeline(job: JobHistory): readonly Step[] {
  const { created_at, history, events } = job;
  // Events have whole seconds.
  const second = (at: string) => Math.floor(Date.parse(at) / 1_000);
  const isTold = ({ event_type: type, created_at: at }: JobEvent) =>
    history.some((attempt) => attempt.outcome === type && Math.abs(second(attempt.at) - second(at)) <= 1);
  const steps = [
    { rank: 0, step: { at: created_at, tone: "quiet", title: "Accepted", detail: null } as const },
    ...history.map((attempt, index) => ({ rank: 1, step: attemptStep(attempt, index + 1) })),
    ...events
      // A try contains more than its event, which is left out; after a retry, only the events of the earlier tries remain.
      .filter((event) => !isTold(event))
      .map((event) => ({ rank: 2, step: eventStep(event) })),
  ];
  return steps
    .toSorted((one, other) => second(one.step.at) - second(other.step.at) || one.rank - other.rank)
    .map(({ step }) => step);
}

function attemptStep({ at, outcome, relay, reply, next_attempt_at: next }: JobAttempt, number: number): Step {
  const where = relay === undefined ? "" : ` at ${relay}`;
  const said = reply === undefined ? null : `“${reply}”`;
  const again =
    next === undefined
      ? null
      : `Next try ${ago(next, Date.parse(at)).replace(/^in /, "after ").replace("now", "at once")}.`;
  const detail = [said, again].filter((part) => part !== null).join(" ") || null;
  switch (outcome) {
    case "sent":
      return { at, tone: "good", title: `Try ${number}: taken${where}`, detail };
    case "failed":
      return { at, tone: "bad", title: `Try ${number}: failed for good${where}`, detail };
    case "retry":
      return { at, tone: "warn", title: `Try ${number}: put off${where}`, detail };
    case "uncertain":
      return { at, tone: "warn", title: `Try ${number}: no answer${where}, which may have the message`, detail };
    case "snooze":
      return { at, tone: "busy", title: `Waited${where}, which cost no try`, detail };
  }
}

function readerWords(title: string, { machine, by }: { readonly machine?: true; readonly by?: string }) {
  const who = by === undefined ? "" : ` (${by})`;
  return machine === true
    ? ({ tone: "busy", title: `${title} by a machine${who}` } as const)
    : ({ tone: "good", title: title + who } as const);
}

function eventStep(event: JobEvent): Step {
  const { created_at: at } = event;
  switch (event.event_type) {
    case "sent":
      return { at, tone: "good", title: "Sent", detail: null };
    case "delivered":
      return { at, tone: "good", title: "Delivered", detail: null };
    case "read":
      return { at, tone: "good", title: "Read", detail: null };
    case "opened":
      return { at, ...readerWords("Opened", event.result), detail: null };
    case "clicked":
      return { at, ...readerWords("A link was clicked", event.result), detail: event.result.url };
    case "bounced":
      return { at, tone: "bad", title: "Bounced", detail: `“${event.result.diagnostic}”` };
    case "complained":
      return { at, tone: "warn", title: "Reported as spam", detail: null };
    case "failed":
      return { at, tone: "bad", title: "Failed", detail: event.result.error };
    case "suppressed":
      return { at, tone: "warn", title: "Not sent", detail: suppressionWords(event.result.reason, event.result.topic) };
  }
}
