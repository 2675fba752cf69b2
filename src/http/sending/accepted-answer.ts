import type { AcceptResult } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";
import { KEY_CONFLICT_TEXT } from "../failures.ts";
import type { FrontDoor } from "../front-door.ts";
import { shownFallbacks } from "./fallbacks.ts";

/** Returns the answer to a request whose job was offered to the queue. Throws an `ApiError` 422 or 429. */
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

export const REPLAYED = { "idempotency-replayed": "true" } as const;

export function replay(exchange: Exchange, jobId: string): Response {
  return exchange.jsonText(202, pendingJob(jobId), REPLAYED);
}

export function keyConflict(): ApiError {
  return new ApiError("idempotency_conflict", KEY_CONFLICT_TEXT);
}

/** Returns the answer to a send. `body`: as received; absent: it has no fallbacks. */
export function pendingJob(jobId: string, body?: unknown): string {
  const fallbacks = body === undefined ? [] : shownFallbacks(jobId, body);
  if (fallbacks.length === 0) return `{"job_id":"${jobId}","status":"pending"}`;
  const fallback = fallbacks.map((each) => ({
    job_id: each.jobId,
    scheduled_at: new Date(each.dueMs).toISOString(),
  }));
  return JSON.stringify({ job_id: jobId, status: "pending", fallback });
}
