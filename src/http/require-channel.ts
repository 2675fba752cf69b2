import { ApiError } from "../domain/errors.ts";
import type { ChannelName } from "../domain/job.ts";
import type { Tenant } from "../domain/tenant.ts";

/** Throws 403 unless the tenant has the channel. */
export function requireChannel(tenant: Tenant, channel: ChannelName): void {
  if (tenant.channels.has(channel)) return;
  throw new ApiError(403, `the channel ${channel} is not enabled for this tenant`);
}
