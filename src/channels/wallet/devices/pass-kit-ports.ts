import type { JobIds } from "../../../domain/ids.ts";
import type { TenantNewsDesk } from "../../../domain/tenants/tenant-news.ts";
import type { BundleMaker, PassDevices, PassStore, TokenSigner } from "../passes.ts";
import type { DeviceChange } from "./device-webhooks.ts";

/** Dependencies of the endpoints for devices. */
export interface PassKitPorts {
  readonly passes: Pick<PassStore, "findBySerial" | "bundle" | "update">;
  readonly devices: Pick<PassDevices, "register" | "unregister" | "updatedSince">;
  /** Notifies the tenant in the background; returns at once. */
  readonly webhooks: { note(change: DeviceChange): void };
  readonly bundles: BundleMaker & TokenSigner;
  readonly news: TenantNewsDesk;
  readonly jobIds: JobIds;
  readonly log: { take(lines: readonly string[]): void };
}
