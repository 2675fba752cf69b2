import type { Clock } from "../../domain/clock.ts";
import type { Random } from "../../domain/random.ts";
import {
  formatTraceparent,
  parseTraceparent,
  type Span,
  type SpanEnd,
  type SpanKind,
  type TraceContext,
  type Tracer,
} from "../../domain/tracing.ts";
import type { EndedSpan } from "./otlp-json.ts";

/** Selects the requests to trace (OTEL_TRACES_SAMPLER). */
export interface Sampler {
  /** Whether a caller's own decision counts. */
  readonly followsCaller: boolean;
  /** The share of the other traces, 0 to 1. */
  readonly share: number;
}

export interface TracerOptions {
  readonly sampler: Sampler;
  readonly clock: Clock;
  readonly random: Random;
  /** Takes ended spans; returns at once. */
  readonly exporter: { take(span: EndedSpan, owner: string): void };
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/**
 * The difference between the wall clock and the monotonic one: less is the rounding of the wall clock, more is a step.
 */
const STEP_MS = 20;

/** Creates spans of sampled traces, and passes ended ones to the exporter. */
export class SampledTracer implements Tracer {
  private readonly pool = new Uint8Array(2048);
  private used = this.pool.length;
  private offsetMs = 0;

  constructor(private readonly options: TracerOptions) {}

  request(name: string, traceparent: string | null): Span | null {
    const caller = traceparent === null ? null : parseTraceparent(traceparent);
    const traceId = caller?.traceId ?? this.newId(TRACE_ID_BYTES);
    return this.samples(traceId, caller) ? this.begin(name, "server", traceId, caller?.spanId) : null;
  }

  step(name: string, kind: SpanKind, parent: string): Span {
    const context = parseTraceparent(parent);
    return this.begin(name, kind, context?.traceId ?? this.newId(TRACE_ID_BYTES), context?.spanId);
  }

  private samples(traceId: string, caller: TraceContext | null): boolean {
    const { followsCaller, share } = this.options.sampler;
    if (followsCaller && caller !== null) return caller.isSampled;
    // The last digits are random in every trace id, so all services with this share choose the same traces.
    return Number.parseInt(traceId.slice(-8), 16) < share * 2 ** 32;
  }

  private begin(name: string, kind: SpanKind, traceId: string, parentSpanId: string | undefined): Span {
    const spanId = this.newId(SPAN_ID_BYTES);
    const startMs = this.nowMs();
    const { exporter } = this.options;
    return {
      traceparent: formatTraceparent({ traceId, spanId }),
      end: ({ owner, attributes, error }: SpanEnd) => {
        const endMs = Math.max(startMs, this.nowMs());
        exporter.take({ name, kind, traceId, spanId, parentSpanId, startMs, endMs, attributes, error }, owner);
      },
    };
  }

  /** Returns Unix time in ms, with fractions. */
  private nowMs(): number {
    const { clock } = this.options;
    const monotonicMs = clock.monotonicMs();
    const wallMs = clock.nowMs();
    if (Math.abs(monotonicMs + this.offsetMs - wallMs) > STEP_MS) this.offsetMs = wallMs - monotonicMs;
    return monotonicMs + this.offsetMs;
  }

  /** Returns random hexadecimal digits, never all zero. */
  private newId(bytes: number): string {
    if (this.used + bytes > this.pool.length) {
      this.options.random.fill(this.pool);
      this.used = 0;
    }
    const id = this.pool.subarray(this.used, this.used + bytes).toHex();
    this.used += bytes;
    return /[1-9a-f]/.test(id) ? id : this.newId(bytes);
  }
}
