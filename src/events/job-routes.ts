import type { Elysia } from "elysia";
import { ApiError } from "../domain/errors.ts";
import { eventTimeMs } from "../domain/event.ts";
import { isJobId } from "../domain/ids.ts";
import { isFinal, type JobRecord } from "../domain/job.ts";
import type { Tenant } from "../domain/tenant.ts";
import { withPass } from "../domain/wallet-result.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { readQuery } from "../http/request-query.ts";

/** `GET /v1/jobs/{job_id}` and `GET /v1/jobs/{job_id}/events`. */
export function jobRoutes(app: Elysia, door: FrontDoor): void {
  app.get("/v1/jobs/:id", ({ request, params }) =>
    door.serve("job", request, async (exchange) => {
      const { tenant, job } = await find(door, exchange, params.id);
      return exchange.json(200, toStatus(await withPass(door, tenant, job)));
    }),
  );
  app.get("/v1/jobs/:id/events", ({ request, params }) =>
    door.serve("job_events", request, async (exchange) =>
      exchange.json(200, toHistory((await find(door, exchange, params.id)).job)),
    ),
  );
}

/** ISO 8601 UTC, whole seconds. */
export function eventCreatedAt(eventId: number): string {
  return `${new Date(eventTimeMs(eventId)).toISOString().slice(0, 19)}Z`;
}

/** Throws 404 for what is not a job of this tenant, without telling a stranger's job from none. */
async function find(
  door: FrontDoor,
  exchange: Exchange,
  id: string | null,
): Promise<{ readonly tenant: Tenant; readonly job: JobRecord }> {
  const tenant = await door.authenticate(exchange);
  // The router gives null for what is no valid percent-encoding.
  const jobId = id?.toLowerCase() ?? "";
  const job = await door.read(exchange, tenant, () => {
    readQuery(exchange.request, []);
    return look(door, tenant, jobId);
  });
  if (job === null) throw new ApiError(404, "there is no such job");
  return { tenant, job };
}

/** The journal first: what it still knows is newer than what the ledger has. */
async function look(door: FrontDoor, tenant: Tenant, jobId: string): Promise<JobRecord | null> {
  if (!isJobId(jobId)) return null;
  const { journal, ledger } = door.ports;
  return (await journal.job(tenant, jobId)) ?? ledger.job(tenant.tenantId, jobId);
}

function toStatus(job: JobRecord): object {
  const { jobId, status, result } = job;
  return isFinal(status) ? { job_id: jobId, status, result: result ?? {} } : { job_id: jobId, status };
}

function toHistory(job: JobRecord): object {
  const events = job.events.map(({ eventId, type, result }) => ({
    event_id: eventId,
    event_type: type,
    result,
    created_at: eventCreatedAt(eventId),
  }));
  return { job_id: job.jobId, events };
}
