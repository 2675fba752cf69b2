import { eventually } from "./eventually.ts";
import { recently } from "./recent-days.ts";
import type { Waybill } from "./waybill.ts";

export interface LoadTenant {
  readonly id: string;
  readonly apiKey: string;
}

/** Tenants that may send as fast as they can. */
export async function createTenants(waybill: Waybill, count: number): Promise<readonly LoadTenant[]> {
  await waybill.operator("PUT", "/plans/load", { requests_per_minute: 1_000_000 });
  return await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const tenant = { id: `load-${i}`, name: `Load ${i}`, plan: "load", permissions: ["allow_raw_html"] };
      const created = await waybill.operator("POST", "/tenants", tenant);
      if (created.status !== 201) throw new Error(JSON.stringify(created.body));
      const key = await waybill.operator("POST", `/tenants/${tenant.id}/keys`);
      return { id: tenant.id, apiKey: key.body.api_key };
    }),
  );
}

export interface TenantEvents {
  readonly byJob: ReadonlyMap<string, readonly string[]>;
  readonly ids: readonly number[];
  /** The id of each job's `sent` event. */
  readonly sentIds: ReadonlyMap<string, number>;
}

/** Reads all of a tenant's events of these days, page by page, and collects the types per job. */
export async function readAllEvents(waybill: Waybill, tenant: LoadTenant): Promise<TenantEvents> {
  const byJob = new Map<string, string[]>();
  const ids: number[] = [];
  const sentIds = new Map<string, number>();
  const days = recently();
  for (let cursor = 0; ; ) {
    const path = `/v1/events?${days}&limit=500${cursor === 0 ? "" : `&cursor=${cursor}`}`;
    const { status, body } = await waybill.request(tenant.apiKey, "GET", path);
    if (status !== 200) throw new Error(JSON.stringify(body));
    for (const event of body.events) {
      ids.push(event.event_id);
      if (event.event_type === "sent") sentIds.set(event.job_id, event.event_id);
      byJob.set(event.job_id, [...(byJob.get(event.job_id) ?? []), event.event_type]);
    }
    if (!body.has_more) return { byJob, ids, sentIds };
    cursor = body.next_cursor;
  }
}

/** Waits until the tenant's list has a final event for each of the jobs, and returns the list. */
export function finishedEvents(
  waybill: Waybill,
  tenant: LoadTenant,
  jobIds: readonly string[],
  withinMs: number,
): Promise<TenantEvents> {
  const isOver = (types: readonly string[] | undefined) => types?.some((type) => type === "sent" || type === "failed");
  return eventually(
    `all jobs of ${tenant.id} are in the event store`,
    async () => {
      const events = await readAllEvents(waybill, tenant);
      return jobIds.every((jobId) => isOver(events.byJob.get(jobId))) ? events : null;
    },
    withinMs,
  );
}
