import { ApiError } from "./api-error.ts";
import type { AuditedCall, AuditLog } from "./audit.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Does the work of a call between its two entries in the audit log. Rejects with an outage if the log cannot be written; the
 * work is then not done.
 */
export async function auditedCall(
  audit: AuditLog,
  exchange: Exchange,
  call: Omit<AuditedCall, "requestId">,
  work: () => Response | Promise<Response>,
): Promise<Response> {
  const end = await audit.begin({ ...call, requestId: exchange.requestId });
  // An error without a status of its own becomes a 500.
  let status = 500;
  try {
    const response = await work();
    ({ status } = response);
    return response;
  } catch (error) {
    if (error instanceof ApiError) ({ status } = error);
    throw error;
  } finally {
    await end({ status, detail: exchange.auditDetail, newTenantId: exchange.newTenantId });
  }
}
