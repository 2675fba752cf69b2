import type { TObject } from "@sinclair/typebox";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Tenant } from "../domain/tenants/tenant.ts";
import type { Json } from "../domain/texts/json.ts";

/** Renders the content of a channel's jobs for operators. */
export interface ContentKind {
  readonly channel: ChannelName;
  /** The schema has a literal member `channel`. */
  readonly schema: TObject;
  readonly example: Json;
  /**
   * Returns the content as it would be sent now, or null if it can no longer be built from the payload. Rejects with
   * `UnavailableError`.
   */
  show(tenant: Tenant, payload: string): Promise<object | null>;
}
