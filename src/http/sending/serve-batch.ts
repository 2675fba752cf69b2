import { isOutage } from "../../domain/errors.ts";
import type { Batch, BatchOutcome, BatchResult, NoRoom } from "../../domain/jobs/batch.ts";
import { type QueueShare, toQueueQuota } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { type Span, traceInLog } from "../../domain/tracing.ts";
import { ApiError, refusedFor } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";
import { type FrontDoor, queueFullText } from "../front-door.ts";
import { isLargeBody } from "../request-body.ts";
import { countAccepted, logAccepted } from "./accept-job.ts";
import type { Acceptance } from "./acceptance.ts";
import { keyConflict, REPLAYED } from "./accepted-answer.ts";
import { BatchMessages, readBatchBody, refusalText } from "./batch-messages.ts";
import { acceptTimed, readSend, type SendKind } from "./serve-send.ts";

const MIB = 1024 * 1024;
/** More values than other bodies may have: a hundred for each of a thousand messages. */
export const BATCH_BOUNDS = { bytesMax: 5 * MIB, valuesMax: 100_000 } as const;

export interface BatchKind extends SendKind {
  /** The names of a message's members. */
  readonly members: ReadonlySet<string>;
}

/**
 * Serves a batch: one authentication and one parse for up to a thousand messages, each of which is checked, queued and counted
 * like a request of its own. A faulty message becomes an error of its index.
 */
export async function serveBatch(door: FrontDoor, exchange: Exchange, kind: BatchKind): Promise<Response> {
  const tenant = await door.authenticate(exchange, "send");
  door.refuseOverLimit(exchange, tenant);
  door.refuseFullQueue(exchange, tenant);
  const isCounted = isLargeBody(exchange);
  if (isCounted) await door.admit(exchange, tenant);
  const step = startStep(door, exchange, kind);
  let batch: Batch;
  try {
    batch = await readBatch(door, exchange, { tenant, kind, isCounted, traceparent: step?.traceparent });
  } catch (error) {
    // 429 takes precedence over every other refusal, and a refused request counts as well.
    if (!isCounted) await door.admit(exchange, tenant);
    throw error;
  }
  const end = (outcome: string, error?: string) =>
    step?.end({
      owner: tenant.tenantId,
      attributes: toAttributes(kind, batch, outcome),
      ...(error !== undefined && { error }),
    });
  const result = await queueBatch(door, exchange, batch).catch((error: unknown) => {
    end("failed", error instanceof ApiError ? error.message : "internal error");
    throw error;
  });
  end(result.kind);
  return await answerBatch(door, exchange, { tenant, kind, isCounted, result });
}

/** Starts one span for all messages, which carry its context. */
function startStep({ ports }: FrontDoor, { span }: Exchange, { channel }: SendKind): Span | undefined {
  return span === null ? undefined : ports.tracer?.step(`accept ${channel} batch`, "producer", span.traceparent);
}

/** Uses the attribute names of OpenTelemetry's conventions for messaging. */
function toAttributes({ channel }: SendKind, { size, tenant }: Batch, outcome: string) {
  return {
    "messaging.system": "waybill",
    "messaging.operation.type": "send",
    "messaging.operation.name": "accept",
    "messaging.destination.name": channel,
    "messaging.batch.message_count": size,
    "waybill.tenant_id": tenant.tenantId,
    "waybill.outcome": outcome,
  };
}

interface Serving {
  readonly tenant: Tenant;
  readonly kind: BatchKind;
  readonly isCounted: boolean;
}

interface Reading extends Serving {
  readonly traceparent: string | undefined;
}

/** Throws an `ApiError` as `readSend` does, and 400 for a body that is no batch. */
async function readBatch(door: FrontDoor, exchange: Exchange, reading: Reading): Promise<Batch> {
  const { tenant, kind, isCounted, traceparent } = reading;
  const { channel } = kind;
  const scope = `${kind.scope}/batch`;
  const { body, idempotency } = await readSend(door, exchange, tenant, { channel, scope, bounds: BATCH_BOUNDS });
  const read = readBatchBody(body);
  const { plan } = tenant;
  const quota = toQueueQuota(plan);
  const nowMs = door.ports.clock.nowMs();
  const traced = traceparent === undefined ? {} : { traceparent };
  const messages = new BatchMessages(door, tenant, {
    body: read,
    members: kind.members,
    accept: (message) => (hasFallback(message) ? NO_FALLBACK : acceptTimed(kind, tenant, message, nowMs)),
    toJob: (jobId, accepted) => ({ jobId, channel, ...accepted, quota, idempotency: null, ...traced }),
  });
  return {
    tenant,
    requestsPerMinute: plan.requestsPerMinute,
    isCounted,
    idempotency,
    size: read.messages.length,
    make: (from, ids) => messages.make(from, ids),
    describeRefusal: (noRoom) => REFUSALS[noRoom],
    onQueued(jobs) {
      exchange.jobsQueued += jobs;
      countAccepted(door, channel, jobs);
    },
  };
}

/** A message of a batch is one job, which its index names. */
const NO_FALLBACK: Acceptance = {
  ok: false,
  refusal: {
    status: 400,
    param: "fallback",
    message: "fallback is not taken in a batch: send this message in a request of its own",
  },
};

function hasFallback(message: unknown): boolean {
  return isJsonObject(message) && "fallback" in message && message["fallback"] !== null;
}

/** Throws an `ApiError` 500 if a store is away and the request is worth repeating. */
async function queueBatch(door: FrontDoor, exchange: Exchange, batch: Batch): Promise<BatchResult> {
  try {
    return await door.ports.batches.accept(batch);
  } catch (error) {
    if (!isOutage(error)) throw error;
    const ids = { tenant_id: batch.tenant.tenantId, request_id: exchange.requestId };
    const trace = traceInLog(exchange.span?.traceparent);
    door.outages.note("a batch could not be queued", { ...ids, ...trace, error: String(error) });
    const what =
      batch.idempotency === null
        ? "it is not known whether messages were queued: try again, with an Idempotency-Key if none must be sent twice"
        : "it is not known which messages were queued: repeat the request with its Idempotency-Key, which queues the others";
    throw new ApiError("outcome_unknown", what);
  }
}

interface Answering extends Serving {
  readonly result: BatchResult;
}

/** Throws an `ApiError` 422 or 429. */
async function answerBatch(door: FrontDoor, exchange: Exchange, answering: Answering): Promise<Response> {
  const { tenant, kind, isCounted, result } = answering;
  switch (result.kind) {
    case "conflict":
      if (!isCounted) await door.admit(exchange, tenant);
      throw keyConflict();
    case "busy":
      if (!isCounted) await door.admit(exchange, tenant);
      throw new ApiError(429, "your batches under way are as many as may wait here: send fewer at a time", {}, 1);
    case "no_room":
      if (!isCounted) exchange.rate = result.rate;
      throw result.why === "limited" ? door.overLimit(exchange, tenant) : door.queueFull(exchange, tenant, result.why);
    case "answered":
      if (result.isReplay && !isCounted) await door.admit(exchange, tenant);
      exchange.rate = result.rate ?? exchange.rate;
      if (exchange.jobsQueued > 0) logQueued(door, exchange, { tenant, kind, outcomes: result.outcomes });
      return exchange.jsonText(202, formatOutcomes(result.outcomes), result.isReplay ? REPLAYED : {});
  }
}

interface Queued {
  readonly tenant: Tenant;
  readonly kind: SendKind;
  readonly outcomes: readonly BatchOutcome[];
}

function logQueued(door: FrontDoor, exchange: Exchange, { tenant, kind: { channel }, outcomes }: Queued): void {
  if ((door.ports.requestLog?.logShare ?? 0) === 0) return;
  const traceparent = exchange.span?.traceparent;
  for (const outcome of outcomes) {
    if ("jobId" in outcome) logAccepted(door, { tenant, exchange, channel, jobId: outcome.jobId, traceparent });
  }
}

/** Jobs and errors, each by index. */
function formatOutcomes(outcomes: readonly BatchOutcome[]): string {
  const jobs: string[] = [];
  const errors: string[] = [];
  for (const [index, outcome] of outcomes.entries()) {
    if ("jobId" in outcome) jobs.push(`{"index":${index},"job_id":"${outcome.jobId}","status":"pending"}`);
    else errors.push(`{"index":${index},${outcome.refusal}}`);
  }
  return `{"jobs":[${jobs.join(",")}],"errors":[${errors.join(",")}]}`;
}

function noShare(what: QueueShare): string {
  return refusalText({ ...refusedFor("queue_share_exceeded"), message: queueFullText(what) });
}

const REFUSALS: Readonly<Record<NoRoom, string>> = {
  limited: refusalText({
    ...refusedFor("rate_limited"),
    message: "too many requests: send this message again after the seconds that RateLimit-Reset names",
  }),
  jobs: noShare("jobs"),
  bytes: noShare("bytes"),
  keys: noShare("keys"),
  unknown: refusalText({
    ...refusedFor("outcome_unknown"),
    message: "it is not known whether this message was queued: the queue did not answer",
  }),
  away: refusalText({
    ...refusedFor("service_unreachable"),
    message: "this message was not queued, because the queue cannot be reached: send it again",
  }),
};
