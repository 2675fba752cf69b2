import type { TObject } from "@sinclair/typebox";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Tenant } from "../domain/tenants/tenant.ts";
import type { Json } from "../domain/texts/json.ts";

/** How operators see what a channel's job is to send. */
export interface ContentKind {
  readonly channel: ChannelName;
  /** With a literal member `channel`. */
  readonly schema: TObject;
  readonly example: Json;
  /** As it would be sent now; null: it can no longer be made from the payload. Rejects with `UnavailableError`. */
  show(tenant: Tenant, payload: string): Promise<object | null>;
}
