import type { Content } from "../../domain/content-store.ts";
import { type Idempotency, type NewJob, toQueueQuota } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { Json } from "../../domain/texts/json.ts";
import { ApiError } from "../api-error.ts";
import { SMALL_BODY_BYTES } from "../body-room.ts";
import { requireSending } from "../endpoint.ts";
import type { Exchange } from "../exchange.ts";
import type { FrontDoor } from "../front-door.ts";
import { readQuery } from "../parameters.ts";
import { type BodyBounds, isLargeBody } from "../request-body.ts";
import { acceptJob } from "./accept-job.ts";
import { type Acceptance, alsoKnown, type Charge, confirmed, type MessageKind, type Refusal } from "./acceptance.ts";
import { answerAccepted, keyConflict, pendingJob, REPLAYED, replay } from "./accepted-answer.ts";
import { acceptFallbacks, takeFallbacks } from "./fallbacks.ts";
import { readIdempotencyKey, under } from "./idempotency.ts";
import { queueWithFallbacks } from "./queue-with-fallbacks.ts";
import { takeSchedule } from "./schedule.ts";

/** A kind of request that queues a job. */
export interface SendKind extends MessageKind {
  /** Scopes the Idempotency-Key: the same key and body under another scope is another request. */
  readonly scope: string;
  /** Bounds on its body; absent: the usual ones. */
  readonly bounds?: BodyBounds;
}

/**
 * Serves a send, the hot path of every channel: one parse, one stringify, one call to the queue. Only a request with a large
 * body is counted by a separate call, before its body is read.
 */
export async function serveSend(door: FrontDoor, exchange: Exchange, kind: SendKind): Promise<Response> {
  const tenant = await door.authenticate(exchange, "send");
  door.refuseOverLimit(exchange, tenant);
  door.refuseFullQueue(exchange, tenant);
  const isLarge = isLargeBody(exchange);
  if (isLarge) await door.admit(exchange, tenant);
  let send: Send;
  let acceptance: Acceptance;
  try {
    send = await readSend(door, exchange, tenant, kind);
    const { body, bytes } = send;
    const look = () => acceptWhole(door, kind, tenant, body);
    // A compressed body may turn out to be larger than it looked.
    acceptance = isLarge || bytes > SMALL_BODY_BYTES ? await door.inTurn(tenant, bytes, look) : look();
    if (acceptance.ok && acceptance.confirm !== undefined) acceptance = await confirmed(acceptance);
  } catch (error) {
    // 429 takes precedence over every other refusal, and a refused request counts as well.
    await door.admit(exchange, tenant);
    throw error;
  }
  const { body, idempotency } = send;
  if (!acceptance.ok) {
    await door.admit(exchange, tenant);
    return (await replayed(door, exchange, { tenant, body, idempotency })) ?? refuse(acceptance.refusal);
  }
  if (acceptance.fallbacks !== undefined) {
    await door.admit(exchange, tenant);
    const { fallbacks } = acceptance;
    return queueWithFallbacks(door, exchange, {
      tenant,
      channel: kind.channel,
      body,
      idempotency,
      acceptance,
      fallbacks,
    });
  }
  const { plan } = tenant;
  const jobId = door.ports.jobIds.next();
  const job = { jobId, channel: kind.channel, ...acceptance.job, quota: toQueueQuota(plan), idempotency };
  if (acceptance.charge !== undefined) {
    await door.admit(exchange, tenant);
    return queueCharged(door, exchange, { tenant, job, contents: acceptance.contents, charge: acceptance.charge });
  }
  const requestsPerMinute = exchange.isCounted ? null : plan.requestsPerMinute;
  const { contents } = acceptance;
  const accepted = await acceptJob(door, { tenant, requestsPerMinute, job, ...(contents && { contents }), exchange });
  if (!exchange.isCounted) exchange.rate = accepted.rate;
  return answerAccepted(door, exchange, tenant, accepted);
}

/** Returns the body's job and its fallbacks. Throws an `ApiError` 403 if a fallback may not be sent. */
function acceptWhole(door: FrontDoor, kind: SendKind, tenant: Tenant, body: unknown): Acceptance {
  const nowMs = door.ports.clock.nowMs();
  const taken = takeFallbacks(body);
  const main = alsoKnown(acceptTimed(kind, tenant, taken === null ? body : taken.body, nowMs), "fallback");
  return taken === null ? main : acceptFallbacks(door, tenant, taken.fallback, main);
}

interface Charged {
  readonly tenant: Tenant;
  readonly job: NewJob;
  readonly contents: readonly Content[] | undefined;
  readonly charge: Charge;
}

/**
 * Charges for the job, then queues it. A process that dies in between leaves a charge without a job, which a sweep refunds. The
 * request has been counted.
 */
async function queueCharged(door: FrontDoor, exchange: Exchange, charged: Charged): Promise<Response> {
  const { tenant, job, contents, charge } = charged;
  const { jobId, idempotency } = job;
  const first = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  if (first?.isSame === true) return replay(exchange, first.jobId);
  if (first !== null) throw keyConflict();
  const twin = await charge.take(jobId, idempotency);
  if (twin !== null) return replay(exchange, twin);
  const onNotQueued = () => charge.undo(jobId);
  const offered = { tenant, requestsPerMinute: null, job, ...(contents && { contents }), exchange, onNotQueued };
  const accepted = await acceptJob(door, offered);
  if (accepted.kind !== "accepted") await onNotQueued();
  return answerAccepted(door, exchange, tenant, accepted);
}

/** Returns the body's job with its scheduled time, which channels do not handle. */
export function acceptTimed(kind: Pick<SendKind, "accept">, tenant: Tenant, body: unknown, nowMs: number): Acceptance {
  const timed = takeSchedule(body, nowMs);
  if (!timed.ok) return timed;
  const acceptance = alsoKnown(kind.accept(tenant, timed.body), "scheduled_at");
  const { dueMs } = timed;
  return acceptance.ok && dueMs !== null ? { ...acceptance, job: { ...acceptance.job, dueMs } } : acceptance;
}

interface Send {
  /** Parsed. */
  readonly body: unknown;
  /** The length of the body, expanded if it was compressed. */
  readonly bytes: number;
  readonly idempotency: Idempotency | null;
}

/** Throws an `ApiError` 403 (channel) or 400, or whatever reading a body throws, in this order. */
export async function readSend(
  door: FrontDoor,
  exchange: Exchange,
  tenant: Tenant,
  { channel, scope, bounds }: Pick<SendKind, "channel" | "scope" | "bounds">,
): Promise<Send> {
  requireSending(tenant, channel);
  readQuery(exchange.request, []);
  const key = readIdempotencyKey(exchange.request);
  const { bytes, value } = await door.json(exchange, bounds);
  return { body: value, bytes: bytes.length, idempotency: under(key, scope, bytes) };
}

/**
 * Returns the first answer to this same request, or null. A repeat gets the original answer even if the request would be
 * refused now, for example because a template is gone.
 */
export async function replayed(
  door: FrontDoor,
  exchange: Exchange,
  { tenant, body, idempotency }: Pick<Send, "body" | "idempotency"> & { readonly tenant: Tenant },
): Promise<Response | null> {
  const queued = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  if (queued?.isSame !== true) return null;
  return exchange.jsonText(202, pendingJob(queued.jobId, body), REPLAYED);
}

function refuse(refusal: Refusal): never {
  const { message, violations } = refusal;
  throw new ApiError(refusal, message, violations === undefined ? {} : { violations: violations.map(toJson) });
}

function toJson(violation: { readonly rule: string; readonly message: string }): Json {
  return { rule: violation.rule, message: violation.message };
}
