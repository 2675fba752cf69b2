/** A step's role in an exchange of messages or calls, with OpenTelemetry's names. */
export type SpanKind = "internal" | "server" | "producer" | "consumer";

/** Attributes of a step: bounded texts without secrets and recipients. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanEnd {
  /** The tenant whose step it is, or another owner: no single owner can fill the exporter's buffer. */
  readonly owner: string;
  readonly attributes: SpanAttributes;
  /** Why it failed; absent: it did not. */
  readonly error?: string;
}

/** A step of a trace that is in progress. */
export interface Span {
  /** Names this step as the parent of later ones: the text of W3C's `traceparent`, of a sampled trace. */
  readonly traceparent: string;
  /** Called once. Returns at once. */
  end(end: SpanEnd): void;
}

/** Follows sampled requests and their jobs. There is no tracer if tracing is off. */
export interface Tracer {
  /**
   * Starts the span of a request. `traceparent` is its header, which may contain anything. Null: the request is not
   * sampled.
   */
  request(name: string, traceparent: string | null): Span | null;
  /** Starts a later step. `parent` is the `traceparent` of an earlier span. */
  step(name: string, kind: SpanKind, parent: string): Span;
}

/** The position at which a trace continues (W3C Trace Context). */
export interface TraceContext {
  /** 32 digits, lower-case hexadecimal; not all zero. */
  readonly traceId: string;
  /** 16 digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const TRACEPARENT_CHARS_MAX = 256;
const SAMPLED = 0x01;

/** Reads a `traceparent`; null: it is malformed. Future versions are read as far as this one defines them. */
export function parseTraceparent(text: string): TraceContext | null {
  const match = text.length > TRACEPARENT_CHARS_MAX ? null : TRACEPARENT.exec(text);
  if (match === null) return null;
  const [, version, traceId = "", spanId = "", flags = "", more] = match;
  if (version === "00" && more !== undefined) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

/** Formats the context of a sampled trace. */
export function formatTraceparent({ traceId, spanId }: Pick<TraceContext, "traceId" | "spanId">): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Length of the text that `formatTraceparent` returns. */
export const TRACEPARENT_CHARS = 55;

/** Returns the trace's id in a text from `formatTraceparent`. */
export function traceIdIn(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/** Returns the log member that links to the trace of a job or request; none if it is not traced. */
export function traceInLog(traceparent: string | undefined): { readonly trace_id?: string } {
  return traceparent === undefined ? {} : { trace_id: traceIdIn(traceparent) };
}
