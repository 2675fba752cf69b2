import type { Content } from "../../domain/content-store.ts";
import { fallbackId } from "../../domain/fallback.ts";
import type { Json } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import type { AcceptResult, Idempotency, NewJob, QueueQuota } from "../../domain/queue.ts";
import type { Plan, Tenant } from "../../domain/tenant.ts";
import { ApiError } from "../api-error.ts";
import { SMALL_BODY_BYTES } from "../body-room.ts";
import { requireSending } from "../endpoint.ts";
import type { Exchange } from "../exchange.ts";
import type { FrontDoor } from "../front-door.ts";
import { readQuery } from "../parameters.ts";
import { type BodyBounds, isLargeBody } from "../request-body.ts";
import { acceptJob } from "./accept-job.ts";
import {
  type Acceptance,
  type Charge,
  confirmed,
  type MessageKind,
  type PlannedFallback,
  type Refusal,
} from "./acceptance.ts";
import { acceptFallbacks, fallbackOf, shownFallbacks, takeFallbacks } from "./fallbacks.ts";
import { takeSchedule } from "./schedule.ts";

/** A kind of request that queues a job. */
export interface SendKind extends MessageKind {
  /** Scopes the Idempotency-Key: the same key and body under another scope is another request. */
  readonly scope: string;
  /** Of its body; absent: as of every call. */
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
  const isCounted = isLargeBody(exchange);
  if (isCounted) await door.admit(exchange, tenant);
  let send: Send;
  let acceptance: Acceptance;
  try {
    send = await readSend(door, exchange, tenant, kind);
    const { body, bytes } = send;
    const look = () => acceptWhole(door, kind, tenant, body);
    // A compressed body may turn out to be larger than it looked.
    acceptance = isCounted || bytes > SMALL_BODY_BYTES ? await door.inTurn(bytes, look) : look();
    if (acceptance.ok && acceptance.confirm !== undefined) acceptance = await confirmed(acceptance);
  } catch (error) {
    // 429 takes precedence over every other refusal, and a refused request counts as well.
    if (!isCounted) await door.admit(exchange, tenant);
    throw error;
  }
  const { body, idempotency } = send;
  if (!acceptance.ok) {
    if (!isCounted) await door.admit(exchange, tenant);
    return (await replayed(door, exchange, { tenant, body, idempotency })) ?? refuse(acceptance.refusal);
  }
  if (acceptance.fallbacks !== undefined) {
    if (!isCounted) await door.admit(exchange, tenant);
    const { fallbacks } = acceptance;
    return queueWithFallbacks(door, exchange, { tenant, kind, body, idempotency, acceptance, fallbacks });
  }
  const { plan } = tenant;
  const jobId = door.ports.jobIds.next();
  const job = { jobId, channel: kind.channel, ...acceptance.job, quota: quotaOf(plan), idempotency };
  if (acceptance.charge !== undefined) {
    if (!isCounted) await door.admit(exchange, tenant);
    return queueCharged(door, exchange, { tenant, job, contents: acceptance.contents, charge: acceptance.charge });
  }
  const requestsPerMinute = isCounted ? null : plan.requestsPerMinute;
  const { contents } = acceptance;
  const accepted = await acceptJob(door, { tenant, requestsPerMinute, job, ...(contents && { contents }), exchange });
  if (!isCounted) exchange.rate = accepted.rate;
  return answerAccepted(door, exchange, tenant, accepted);
}

/** The body's job, and what follows if it is not received. Throws an `ApiError` 403 where that may not be sent. */
function acceptWhole(door: FrontDoor, kind: SendKind, tenant: Tenant, body: unknown): Acceptance {
  const nowMs = door.ports.clock.nowMs();
  const taken = takeFallbacks(body);
  if (taken === null) return acceptTimed(kind, tenant, body, nowMs);
  return acceptFallbacks(door, tenant, taken.fallback, acceptTimed(kind, tenant, taken.body, nowMs));
}

interface Charged {
  readonly tenant: Tenant;
  readonly job: NewJob;
  readonly contents: readonly Content[] | undefined;
  readonly charge: Charge;
}

/**
 * Takes what the job costs, then queues it. A process that dies in between leaves something that no job has, which a sweep gives
 * back. The request has been counted.
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

/** The body's job, with the time that it is scheduled for, which is no channel's matter. */
export function acceptTimed(kind: Pick<SendKind, "accept">, tenant: Tenant, body: unknown, nowMs: number): Acceptance {
  const timed = takeSchedule(body, nowMs);
  if (!timed.ok) return timed;
  const acceptance = kind.accept(tenant, timed.body);
  const { dueMs } = timed;
  return acceptance.ok && dueMs !== null ? { ...acceptance, job: { ...acceptance.job, dueMs } } : acceptance;
}

interface WithFallbacks {
  readonly tenant: Tenant;
  readonly kind: SendKind;
  /** Parsed. */
  readonly body: unknown;
  readonly idempotency: Idempotency | null;
  readonly acceptance: Acceptance & { readonly ok: true };
  readonly fallbacks: readonly PlannedFallback[];
}

/**
 * Queues a message and what follows if it is not received. The request has been counted. Throws an `ApiError` 422, 429 or 500.
 *
 * The fallbacks come first: one whose message is not queued in the end, because it was refused or this process died, is never
 * sent. The message alone has the Idempotency-Key, so a repeat after such an end queues everything anew.
 */
async function queueWithFallbacks(door: FrontDoor, exchange: Exchange, send: WithFallbacks): Promise<Response> {
  const { tenant, kind, body, idempotency, acceptance, fallbacks } = send;
  const before = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  if (before !== null && !before.isSame) throw keyConflict();
  if (before !== null) return exchange.jsonText(202, pendingJob(before.jobId, body), REPLAYED);

  const jobId = door.ports.jobIds.next();
  exchange.queues(jobId);
  const common = { tenant, requestsPerMinute: null, exchange };
  const quota = quotaOf(tenant.plan);
  const queued: string[] = [];
  const withdraw = () => withdrawAll(door, tenant, queued);
  for (const [at, { dueMs }] of shownFallbacks(jobId, body).entries()) {
    const fallback = fallbacks[at];
    if (fallback === undefined) break;
    const id = fallbackId(jobId, at + 1);
    const what = { ...fallback.accepted.job, dueMs, fallback: fallbackOf(jobId, fallback, at + 1) };
    // Pending until it is known to be needed.
    const job = {
      jobId: id,
      channel: fallback.channel,
      ...what,
      needsScreening: true,
      quota,
      idempotency: null,
    } as const;
    const { contents } = fallback.accepted;
    const result = await acceptJob(door, { ...common, job, ...(contents && { contents }) }).catch(async (error) => {
      await withdraw();
      throw error;
    });
    if (result.kind !== "accepted") {
      await withdraw();
      return answerAccepted(door, exchange, tenant, result);
    }
    queued.push(id);
  }
  const job = { jobId, channel: kind.channel, ...acceptance.job, quota, idempotency };
  const { contents } = acceptance;
  const result = await acceptJob(door, { ...common, job, ...(contents && { contents }), onNotQueued: withdraw });
  if (result.kind === "accepted") return exchange.jsonText(202, pendingJob(jobId, body));
  await withdraw();
  // Another call with the same key was faster.
  if (result.kind === "replayed") return exchange.jsonText(202, pendingJob(result.jobId, body), REPLAYED);
  return answerAccepted(door, exchange, tenant, result);
}

/** Those that this does not reach are not sent either: their message was never queued. */
async function withdrawAll({ ports }: FrontDoor, tenant: Tenant, jobIds: readonly string[]): Promise<void> {
  const withdrawn = await Promise.allSettled(jobIds.map((jobId) => ports.schedule.cancel(tenant, jobId)));
  for (const each of withdrawn) {
    if (each.status === "fulfilled") continue;
    const fields = { tenant_id: tenant.tenantId, error: String(each.reason) };
    ports.telemetry.log("warn", "a fallback without its message is left to its turn", fields);
  }
}

/** The answer to a request whose job was offered to the queue. Throws an `ApiError` 422 or 429. */
export function answerAccepted(door: FrontDoor, exchange: Exchange, tenant: Tenant, accepted: AcceptResult): Response {
  switch (accepted.kind) {
    case "accepted":
      return exchange.jsonText(202, pendingJob(accepted.jobId));
    case "replayed":
      return replay(exchange, accepted.jobId);
    case "conflict":
      throw keyConflict();
    case "limited":
      throw door.overLimit(exchange, tenant);
    case "queue_full":
      throw door.queueFull(exchange, tenant, accepted.what);
  }
}

/** What a tenant on this plan may have in the queue. */
export function quotaOf({ queuedJobsMax, queuedBytesMax }: Plan): QueueQuota {
  return { jobs: queuedJobsMax, bytes: queuedBytesMax };
}

interface Send {
  /** Parsed. */
  readonly body: unknown;
  /** Of the body, expanded if it was compressed. */
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

/** Of a request whose body has been parsed already. Throws an `ApiError` 400. */
export function idempotencyOf({ request }: Exchange, scope: string, body: unknown): Idempotency | null {
  return under(readIdempotencyKey(request), scope, JSON.stringify(body));
}

function under(key: string | null, scope: string, body: Uint8Array | string): Idempotency | null {
  if (key === null) return null;
  const fingerprint = new Bun.CryptoHasher("sha256").update(`${scope}\n`).update(body).digest("base64url");
  return { key, fingerprint };
}

/**
 * The first answer to this same request, or null. A repeat gets the original answer even if the request would be refused now,
 * for example because a template is gone.
 */
async function replayed(
  door: FrontDoor,
  exchange: Exchange,
  { tenant, body, idempotency }: Pick<Send, "body" | "idempotency"> & { readonly tenant: Tenant },
): Promise<Response | null> {
  const queued = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  if (queued?.isSame !== true) return null;
  return exchange.jsonText(202, pendingJob(queued.jobId, body), REPLAYED);
}

export const REPLAYED = { "idempotency-replayed": "true" } as const;

export function replay(exchange: Exchange, jobId: string): Response {
  return exchange.jsonText(202, pendingJob(jobId), REPLAYED);
}

function refuse({ status, message, violations }: Refusal): never {
  throw new ApiError(status, message, violations === undefined ? {} : { violations: violations.map(toJson) });
}

const IDEMPOTENCY_KEY = new RegExp(`^[\\x20-\\x7e]{1,${limits.idempotencyKeyCharsMax}}$`);

export function isIdempotencyKey(text: string): boolean {
  return IDEMPOTENCY_KEY.test(text);
}

function readIdempotencyKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key === null || isIdempotencyKey(key)) return key;
  throw new ApiError(
    400,
    `the Idempotency-Key must be 1 to ${limits.idempotencyKeyCharsMax} printable ASCII characters`,
  );
}

export function keyConflict(): ApiError {
  return new ApiError(422, "this Idempotency-Key was used before with another body");
}

/** The answer to a send. `body`: as it was sent; absent: it has no fallbacks. */
function pendingJob(jobId: string, body?: unknown): string {
  const fallbacks = body === undefined ? [] : shownFallbacks(jobId, body);
  if (fallbacks.length === 0) return `{"job_id":"${jobId}","status":"pending"}`;
  const fallback = fallbacks.map((each) => ({
    job_id: each.jobId,
    scheduled_at: new Date(each.dueMs).toISOString(),
  }));
  return JSON.stringify({ job_id: jobId, status: "pending", fallback });
}

function toJson(violation: { readonly rule: string; readonly message: string }): Json {
  return { rule: violation.rule, message: violation.message };
}
