import type { JsonObject } from "../domain/texts/json.ts";
import type { AuditedCall, AuditLog } from "../http/audit.ts";

/** Stands in the audit log for acts without a caller. No operator has this name. */
const WAYBILL = { id: "waybill", name: "waybill" } as const;

/** Adds an act of the service itself. Rejects with `UnavailableError` or `TransportError`. */
export async function auditOwnAct(
  audit: AuditLog,
  act: Pick<AuditedCall, "action" | "tenantId" | "target">,
  detail: JsonObject,
): Promise<void> {
  const end = await audit.begin({ ...act, operator: WAYBILL, requestId: crypto.randomUUID() });
  await end({ status: 200, detail, newTenantId: null });
}
