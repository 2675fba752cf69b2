import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { Settlement } from "../../domain/jobs/queue.ts";
import { maskedText } from "../../domain/texts/masked.ts";
import type { Span, SpanAttributes, SpanEnd, Tracer } from "../../domain/tracing.ts";

/** Ends the span of an attempt. */
export type AttemptEnd = (outcome: Outcome) => void;

/**
 * Starts the span of one delivery; null: the job is not traced. `provider` names the relay if the outcome does not.
 */
export function traceAttempt(tracer: Tracer | undefined, job: QueuedJob, provider: string): AttemptEnd | null {
  const { traceparent, channel, attempts, waits = 0 } = job;
  if (tracer === undefined || traceparent === undefined) return null;
  const span = tracer.step(`deliver ${channel}`, "consumer", traceparent);
  return (outcome) => {
    const why = getError(outcome);
    span.end({
      owner: job.tenantId,
      attributes: {
        ...buildAttributes(job, "process", "deliver"),
        "waybill.attempt": attempts + 1,
        ...(waits > 0 && { "waybill.waits": waits }),
        "waybill.relay": outcome.relay ?? provider,
        "waybill.outcome": outcome.kind,
        ...(why !== undefined && { "error.type": outcome.kind }),
      },
      ...(why !== undefined && { error: maskedText(why) }),
    });
  };
}

/** The spans of one lease term's settlements, from their submission until they are on disk. */
export class SettlementTraces {
  private readonly spans = new Map<Settlement, Span>();

  constructor(private readonly tracer: Tracer | undefined) {}

  begins(settlement: Settlement): void {
    const { kind, job } = settlement;
    const { traceparent, channel } = job;
    if (traceparent === undefined || this.tracer === undefined) return;
    if (kind === "final" || kind === "retry") {
      this.spans.set(settlement, this.tracer.step(`settle ${channel}`, "internal", traceparent));
    }
  }

  landed(settlements: readonly Settlement[]): void {
    if (this.spans.size === 0) return;
    for (const settlement of settlements) {
      this.spans.get(settlement)?.end(toSpanEnd(settlement));
      this.spans.delete(settlement);
    }
  }
}

function toSpanEnd(settlement: Settlement): SpanEnd {
  const { kind, job } = settlement;
  const attributes = {
    ...buildAttributes(job, "settle", "settle"),
    "waybill.outcome": kind === "final" ? settlement.status : kind,
    ...(kind === "retry" && { "waybill.retry_delay_ms": Math.ceil(settlement.delayMs) }),
  };
  return { owner: job.tenantId, attributes };
}

function getError(outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case "failed":
      return outcome.error;
    case "retry":
    case "away":
      return outcome.why;
    case "delivered":
    case "suppressed":
      return undefined;
  }
}

/** Uses the names of OpenTelemetry's conventions for messaging. */
function buildAttributes({ channel, jobId, tenantId }: QueuedJob, type: string, name: string): SpanAttributes {
  return {
    "messaging.system": "waybill",
    "messaging.operation.type": type,
    "messaging.operation.name": name,
    "messaging.destination.name": channel,
    "messaging.message.id": jobId,
    "waybill.tenant_id": tenantId,
  };
}
