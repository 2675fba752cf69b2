import type { Content } from "../../domain/content-store.ts";
import type { ChannelName } from "../../domain/job.ts";
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
import { type Acceptance, type Charge, confirmed, type Refusal } from "./acceptance.ts";
import { takeSchedule } from "./schedule.ts";

/** A kind of request that queues a job. */
export interface SendKind {
  /** The channel that the tenant must have enabled. */
  readonly channel: ChannelName;
  /** Scopes the Idempotency-Key: the same key and body under another scope is another request. */
  readonly scope: string;
  /** Of its body; absent: as of every call. */
  readonly bounds?: BodyBounds;
  /** Turns the parsed body into a job, or into the first reason to refuse it. */
  accept(tenant: Tenant, body: unknown): Acceptance;
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
    const look = () => acceptTimed(kind, tenant, body, door.ports.clock.nowMs());
    // A compressed body may turn out to be larger than it looked.
    acceptance = isCounted || bytes > SMALL_BODY_BYTES ? await door.inTurn(bytes, look) : look();
    if (acceptance.ok && acceptance.confirm !== undefined) acceptance = await confirmed(acceptance);
  } catch (error) {
    // 429 takes precedence over every other refusal, and a refused request counts as well.
    if (!isCounted) await door.admit(exchange, tenant);
    throw error;
  }
  const { idempotency } = send;
  if (!acceptance.ok) {
    if (!isCounted) await door.admit(exchange, tenant);
    return (await replayed(door, exchange, { tenant, idempotency })) ?? refuse(acceptance.refusal);
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
  { tenant, idempotency }: { readonly tenant: Tenant; readonly idempotency: Idempotency | null },
): Promise<Response | null> {
  const queued = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  return queued?.isSame === true ? replay(exchange, queued.jobId) : null;
}

export const REPLAYED = { "idempotency-replayed": "true" } as const;

export function replay(exchange: Exchange, jobId: string): Response {
  return exchange.jsonText(202, pendingJob(jobId), REPLAYED);
}

function refuse({ status, message, violations }: Refusal): never {
  throw new ApiError(status, message, violations === undefined ? {} : { violations: violations.map(toJson) });
}

const IDEMPOTENCY_KEY = new RegExp(`^[\\x20-\\x7e]{1,${limits.idempotencyKeyCharsMax}}$`);

function readIdempotencyKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key === null || IDEMPOTENCY_KEY.test(key)) return key;
  throw new ApiError(
    400,
    `the Idempotency-Key must be 1 to ${limits.idempotencyKeyCharsMax} printable ASCII characters`,
  );
}

export function keyConflict(): ApiError {
  return new ApiError(422, "this Idempotency-Key was used before with another body");
}

function pendingJob(jobId: string): string {
  return `{"job_id":"${jobId}","status":"pending"}`;
}

function toJson(violation: { readonly rule: string; readonly message: string }): Json {
  return { rule: violation.rule, message: violation.message };
}
