import { jobTimeMs } from "../../src/domain/ids.ts";
import { eventTimeMs } from "../../src/domain/jobs/event.ts";
import { type LoadTenant, readAllEvents } from "./load.ts";
import type { Waybill } from "./waybill.ts";

/** A template that the sandbox Graph API accepts. */
export const CHAT = { phone_number: "5491122334455", template_id: "order_update", params: ["Ann", "4711"] };

/** Tenants that may send as fast as they can, each from a number of its own (`formatNumber`). */
export async function createChatTenants(waybill: Waybill, count: number): Promise<readonly LoadTenant[]> {
  await waybill.operator("PUT", "/plans/load", { requests_per_minute: 1_000_000 });
  const tenants: LoadTenant[] = [];
  for (let i = 0; i < count; i += 1) {
    const id = `chat-${i}`;
    const tenant = { id, name: id, plan: "load", channels: ["whatsapp"], allow_custom: ["whatsapp"] };
    await waybill.operator("POST", "/tenants", tenant);
    const sender = { phone_number_id: formatNumber(i), access_token: "token" };
    await waybill.operator("PUT", `/tenants/${id}/credentials/whatsapp`, sender);
    const key = await waybill.operator("POST", `/tenants/${id}/keys`);
    tenants.push({ id, apiKey: key.body.api_key });
  }
  return tenants;
}

export function formatNumber(tenant: number): string {
  return String(900_000 + tenant);
}

/** Times since 1970, in milliseconds. */
export interface SentChat {
  readonly acceptedMs: number;
  readonly sentMs: number;
  /** The time of the tenant's newest event. */
  readonly lastMs: number;
}

/** The tenant's messages whose three statuses have all been recorded. */
export async function readChats(waybill: Waybill, tenant: LoadTenant): Promise<readonly SentChat[]> {
  const { byJob, ids, sentIds } = await readAllEvents(waybill, tenant);
  // No spread: there may be more events than a call can have arguments.
  const lastMs = eventTimeMs(ids.reduce((last, id) => Math.max(last, id), 0));
  const whole = [...sentIds].filter(([jobId]) => byJob.get(jobId)?.length === 3);
  return whole.map(([jobId, eventId]) => ({ acceptedMs: jobTimeMs(jobId), sentMs: eventTimeMs(eventId), lastMs }));
}
