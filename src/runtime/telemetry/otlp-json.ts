import type { SpanAttributes, SpanKind } from "../../domain/tracing.ts";

/** An ended step of a trace. Times are Unix ms with fractions. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  readonly error: string | undefined;
}

/** SpanKind and StatusCode of opentelemetry/proto/trace/v1. */
const KIND = { internal: 1, server: 2, producer: 4, consumer: 5 } as const satisfies Record<SpanKind, number>;
const STATUS_ERROR = 2;
/** A longer text is cut, which keeps the buffer's bytes within its count of spans. */
const TEXT_CHARS_MAX = 300;

export interface TracedService {
  /** Attributes of the resource, `service.name` among them. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly version: string;
}

/** Encodes an `ExportTraceServiceRequest` in OTLP's JSON encoding. */
export function encodeSpans({ attributes, version }: TracedService, spans: readonly EndedSpan[]): string {
  const scopeSpans = [{ scope: { name: "waybill", version }, spans: spans.map(encodeSpan) }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: encodeAttributes(attributes) }, scopeSpans }] });
}

function encodeSpan({ parentSpanId, kind, startMs, endMs, attributes, error, ...named }: EndedSpan) {
  return {
    ...named,
    ...(parentSpanId !== undefined && { parentSpanId }),
    kind: KIND[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: encodeAttributes(attributes),
    ...(error !== undefined && { status: { code: STATUS_ERROR, message: cut(error) } }),
  };
}

function encodeAttributes(attributes: SpanAttributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: encodeValue(value) }));
}

function encodeValue(value: string | number | boolean) {
  if (typeof value === "string") return { stringValue: cut(value) };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** Formats 64 bits as decimal text: a number would lose the last digits. */
function nanoseconds(unixMs: number): string {
  const wholeMs = Math.floor(unixMs);
  return String(BigInt(wholeMs) * 1_000_000n + BigInt(Math.floor((unixMs - wholeMs) * 1e6)));
}

function cut(text: string): string {
  return text.length > TEXT_CHARS_MAX ? text.slice(0, TEXT_CHARS_MAX).toWellFormed() : text;
}
