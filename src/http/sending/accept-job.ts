import type { Content } from "../../domain/content-store.ts";
import { isOutage, TransportError, UnavailableError } from "../../domain/errors.ts";
import { isSampled } from "../../domain/ids.ts";
import type { ChannelName, StoredPayload } from "../../domain/jobs/job.ts";
import {
  LASTING_MS,
  LASTING_PAYLOAD_BYTES_MAX,
  type PayloadRef,
  QUEUED_PAYLOAD_BYTES_MAX,
} from "../../domain/jobs/payload-store.ts";
import type { AcceptResult, NewJob } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { type Span, traceInLog } from "../../domain/tracing.ts";
import { ApiError } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";
import type { FrontDoor } from "../front-door.ts";

export interface Accepting {
  readonly tenant: Tenant;
  /** Null: the request has been counted already. */
  readonly requestsPerMinute: number | null;
  readonly job: NewJob;
  /** Files that the job sends; absent: none. */
  readonly contents?: readonly Content[];
  readonly exchange: Exchange;
  /** Undoes the preparations for the job; called only if the job was certainly not queued. */
  onNotQueued?(): Promise<void>;
}

/**
 * Queues the job, with the payload stored beside the queue if it is large, or waits there for long. If a store is unavailable, throws an `ApiError` 500 that says
 * whether the request may be repeated.
 */
export function acceptJob(door: FrontDoor, accepting: Accepting): Promise<AcceptResult> {
  const { span } = accepting.exchange;
  accepting.exchange.queues(accepting.job.jobId);
  return span === null ? accept(door, accepting) : acceptTraced(door, accepting, span);
}

/** Deliveries become spans of the request's trace because the job carries this span's context. */
async function acceptTraced(door: FrontDoor, accepting: Accepting, { traceparent: parent }: Span) {
  const { job, tenant } = accepting;
  const { jobId, channel } = job;
  const span = door.ports.tracer?.step(`accept ${channel}`, "producer", parent);
  const attributes = { ...sendAttributes(channel, jobId), "waybill.tenant_id": tenant.tenantId };
  const end = (outcome: string, error?: string) =>
    span?.end({
      owner: tenant.tenantId,
      attributes: { ...attributes, "waybill.outcome": outcome },
      ...(error !== undefined && { error }),
    });
  try {
    const traced = span === undefined ? job : { ...job, traceparent: span.traceparent };
    const answer = await accept(door, { ...accepting, job: traced });
    end(answer.kind);
    return answer;
  } catch (error) {
    end("failed", error instanceof ApiError ? error.message : "internal error");
    throw error;
  }
}

/** Uses the attribute names of OpenTelemetry's conventions for messaging. */
function sendAttributes(channel: string, jobId: string) {
  return {
    "messaging.system": "waybill",
    "messaging.operation.type": "send",
    "messaging.operation.name": "accept",
    "messaging.destination.name": channel,
    "messaging.message.id": jobId,
  };
}

async function accept(door: FrontDoor, accepting: Accepting): Promise<AcceptResult> {
  const { tenant, requestsPerMinute, job, exchange } = accepting;
  try {
    const accepted =
      accepting.contents !== undefined || isStoredElsewhere(door, job)
        ? await acceptLarge(door, accepting)
        : await door.ports.queue.accept(tenant, requestsPerMinute, job);
    if (accepted.kind === "accepted") {
      countAccepted(door, job.channel, 1);
      logAccepted(door, { tenant, exchange, channel: job.channel, jobId: job.jobId, traceparent: job.traceparent });
    }
    return accepted;
  } catch (error) {
    if (!isOutage(error)) throw error;
    if (!(error instanceof TransportError)) await accepting.onNotQueued?.();
    const ids = { job_id: job.jobId, tenant_id: tenant.tenantId, request_id: exchange.requestId };
    const trace = traceInLog(job.traceparent);
    door.outages.note("a job could not be queued", { ...ids, ...trace, error: String(error) });
    const effect =
      error instanceof TransportError ? "it is not known whether the job was queued" : "the job was not queued";
    throw new ApiError("outcome_unknown", `${effect}: try again, with an Idempotency-Key if it must not be sent twice`);
  }
}

export function countAccepted({ ports }: FrontDoor, channel: ChannelName, jobs: number): void {
  ports.telemetry.count("messages", { channel, outcome: "accepted" }, jobs);
  ports.watched?.noteAccepted(channel, jobs);
}

interface Accepted {
  readonly tenant: Tenant;
  readonly exchange: Exchange;
  readonly channel: ChannelName;
  readonly jobId: string;
  readonly traceparent: string | undefined;
}

/** Writes a line about the job if it belongs to the share that is logged. */
export function logAccepted({ ports }: FrontDoor, { tenant, exchange, channel, jobId, traceparent }: Accepted): void {
  if (!isSampled(jobId, ports.requestLog?.logShare ?? 0)) return;
  const ids = { job_id: jobId, request_id: exchange.requestId, tenant_id: tenant.tenantId, ...traceInLog(traceparent) };
  ports.telemetry.log("info", "a job was accepted", { ...ids, channel });
}

/** The most UTF-8 bytes that one UTF-16 code unit can take. */
const BYTES_PER_UNIT = 3;

/** Whether its payload is too large for the queue, or for as long as it waits there. */
export function isStoredElsewhere({ ports }: FrontDoor, { payload, dueMs = 0 }: NewJob): boolean {
  if (isLarge(payload)) return true;
  return payload.length > LASTING_PAYLOAD_BYTES_MAX && dueMs > ports.clock.nowMs() + LASTING_MS;
}

function isLarge(payload: string): boolean {
  if (payload.length * BYTES_PER_UNIT <= QUEUED_PAYLOAD_BYTES_MAX) return false;
  return Buffer.byteLength(payload) > QUEUED_PAYLOAD_BYTES_MAX;
}

/**
 * Stores the payload and the files that it names, then queues the job that refers to it, so a job never finds them missing. If
 * the job was certainly not queued, they are removed again. The sweep collects those that could not be removed, those left by a
 * process that died in between, and those of jobs whose outcome is unknown.
 */
async function acceptLarge(
  door: FrontDoor,
  { tenant, requestsPerMinute, job, contents = [] }: Accepting,
): Promise<AcceptResult> {
  const ref = { tenantId: tenant.tenantId, jobId: job.jobId };
  const stored = await storeLarge(door, tenant, job, contents);
  let answer: AcceptResult;
  try {
    answer = await door.ports.queue.accept(tenant, requestsPerMinute, stored);
  } catch (error) {
    if (!(error instanceof TransportError)) await discard(door, ref, contents);
    throw error;
  }
  if (answer.kind !== "accepted") await discard(door, ref, contents);
  return answer;
}

/**
 * Stores the job's payload and the files that it names; returns the job as it is queued. If this fails, the job was certainly
 * not queued.
 */
export async function storeLarge(
  door: FrontDoor,
  { tenantId }: Tenant,
  job: NewJob,
  contents: readonly Content[] = [],
): Promise<NewJob> {
  const payload = Buffer.from(job.payload);
  const { sha256, bytes } = await door.inTurn({ tenantId }, payload.length, () => nameOfPayload(payload));
  await put(door, { tenantId, jobId: job.jobId }, payload, contents);
  // Files count against the tenant's share of the queue and a delivery's memory, like the payload.
  const stored = { sha256, bytes: contents.reduce((sum, { body }) => sum + body.length, bytes) };
  return { ...job, payload: "", stored };
}

/** Rejects with `UnavailableError` whatever happened to the payload. */
async function put(
  { ports: { payloads, contents: files } }: FrontDoor,
  ref: PayloadRef,
  payload: Uint8Array,
  contents: readonly Content[],
): Promise<void> {
  try {
    if (contents.length > 0) await files.put(ref, contents);
    await payloads.put(ref, payload);
  } catch (error) {
    throw isOutage(error) ? new UnavailableError("the payload could not be stored", { cause: error }) : error;
  }
}

async function discard(
  { ports: { payloads, contents, telemetry } }: FrontDoor,
  ref: PayloadRef,
  stored: readonly Content[],
): Promise<void> {
  const sha256s = stored.map(({ sha256 }) => sha256);
  await Promise.all([payloads.remove(ref), stored.length > 0 && contents.remove(ref, sha256s)]).catch(
    (error: unknown) => {
      const fields = { job_id: ref.jobId, error: String(error) };
      telemetry.log("warn", "the payload of a job that was not queued is left to the sweep", fields);
    },
  );
}

/** Names a payload by its content. */
export function nameOfPayload(payload: Uint8Array): StoredPayload {
  return { sha256: new Bun.CryptoHasher("sha256").update(payload).digest("hex"), bytes: payload.length };
}
