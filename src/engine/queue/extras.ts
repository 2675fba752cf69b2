import { decodeFallback, encodeFallback, type Fallback } from "../../domain/jobs/fallback.ts";
import { decodeTags, encodeTags, type Tag } from "../../domain/jobs/tags.ts";
import { TRACEPARENT_CHARS } from "../../domain/tracing.ts";

/**
 * Data for the engine that only few jobs have. It is part of the payload and not of the entry's head, because a former
 * release reads each field of the head strictly and ignores unknown members of a payload.
 *
 * A payload begins with those members that are present, in this order: `{"$trace":"<traceparent>","$job":"<extras>",`.
 * If the payload is stored elsewhere, they follow digest and size, each behind a tab: `<traceparent or empty>`,
 * `<extras>`. Extras are `<tags>|<due unix ms>`, either of which may be missing, and of a fallback `|<fallback>` behind
 * them (`encodeFallback`). A topic comes last, as the member `"$topic":"<topic>",` or behind one more tab. A payload
 * that is no object with members carries none.
 */
export interface JobExtras {
  readonly traceparent?: string;
  readonly tags?: readonly Tag[];
  readonly topic?: string;
  readonly dueMs?: number;
  readonly fallback?: Fallback;
}

const TRACE_BEFORE = '{"$trace":"';
const EXTRAS_BEFORE = '{"$job":"';
const TOPIC_BEFORE = '{"$topic":"';
const AFTER = '",';
const TRACE_END = TRACE_BEFORE.length + TRACEPARENT_CHARS;

/** Returns the payload with its job's extras. */
export function withExtras(payload: string, job: JobExtras): string {
  if (job.traceparent === undefined && job.topic === undefined && !hasExtras(job)) return payload;
  if (!payload.startsWith('{"')) return payload;
  const about = job.topic === undefined ? payload : TOPIC_BEFORE + job.topic + AFTER + payload.slice(1);
  const extras = hasExtras(job) ? EXTRAS_BEFORE + extrasText(job) + AFTER + about.slice(1) : about;
  return job.traceparent === undefined ? extras : TRACE_BEFORE + job.traceparent + AFTER + extras.slice(1);
}

/** Returns the text that follows the size of a payload that is stored elsewhere. */
export function extrasOfStored(job: JobExtras): string {
  const { traceparent = "", topic } = job;
  const extras = hasExtras(job) ? extrasText(job) : "";
  if (topic !== undefined) return `\t${traceparent}\t${extras}\t${topic}`;
  if (extras === "") return traceparent === "" ? "" : `\t${traceparent}`;
  return `\t${traceparent}\t${extras}`;
}

/** Returns the number of bytes that its extras add to a job's payload. */
export function countExtraBytes(job: JobExtras): number {
  const trace = job.traceparent === undefined ? 0 : TRACE_END + AFTER.length - 1;
  const about = job.topic === undefined ? 0 : TOPIC_BEFORE.length + Buffer.byteLength(job.topic) + AFTER.length - 1;
  return trace + about + (hasExtras(job) ? EXTRAS_BEFORE.length + extrasText(job).length + AFTER.length - 1 : 0);
}

/** `stored`: the texts behind the size of a payload that is stored elsewhere. */
export function readExtras(written: string, stored: readonly string[]): JobExtras & { readonly payload: string } {
  const [traceOfStored = "", extrasOfIt = "", topicOfIt = ""] = stored;
  const hasTrace = written.startsWith(TRACE_BEFORE) && written.startsWith(AFTER, TRACE_END);
  let payload = hasTrace ? `{${written.slice(TRACE_END + AFTER.length)}` : written;
  let extras = extrasOfIt;
  if (payload.startsWith(EXTRAS_BEFORE)) {
    const end = payload.indexOf(AFTER, EXTRAS_BEFORE.length);
    extras = payload.slice(EXTRAS_BEFORE.length, end);
    payload = `{${payload.slice(end + AFTER.length)}`;
  }
  let topic = topicOfIt;
  if (payload.startsWith(TOPIC_BEFORE)) {
    const end = payload.indexOf(AFTER, TOPIC_BEFORE.length);
    topic = payload.slice(TOPIC_BEFORE.length, end);
    payload = `{${payload.slice(end + AFTER.length)}`;
  }
  const traceparent = hasTrace ? written.slice(TRACE_BEFORE.length, TRACE_END) : traceOfStored;
  return {
    payload,
    ...(traceparent !== "" && { traceparent }),
    ...(extras !== "" && decodeExtras(extras)),
    ...(topic !== "" && { topic }),
  };
}

function hasExtras({ tags, dueMs, fallback }: JobExtras): boolean {
  return dueMs !== undefined || fallback !== undefined || (tags !== undefined && tags.length > 0);
}

function extrasText({ tags = [], dueMs, fallback }: JobExtras): string {
  return `${encodeTags(tags)}|${dueMs ?? ""}${fallback === undefined ? "" : `|${encodeFallback(fallback)}`}`;
}

function decodeExtras(text: string): JobExtras {
  const [tags = "", due = "", fallback] = text.split("|");
  return {
    ...(tags !== "" && { tags: decodeTags(tags) }),
    ...(due !== "" && { dueMs: Number(due) }),
    ...(fallback !== undefined && { fallback: decodeFallback(fallback) }),
  };
}
