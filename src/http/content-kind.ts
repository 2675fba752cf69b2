import type { TObject } from "@sinclair/typebox";
import { type PassFiller, parseCarrier, valuesBefore } from "../domain/channels/carried-pass.ts";
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

/** The content of a message that carries a pass, as operators see it: with values like those of the pass. */
export function shownWithPass(kind: ContentKind, fill: PassFiller): ContentKind {
  return {
    ...kind,
    show(tenant, payload) {
      const carrier = parseCarrier(payload);
      if (carrier === null) return kind.show(tenant, payload);
      const sample = { values: valuesBefore(carrier.pass), file: null };
      return kind.show(tenant, JSON.stringify(fill(carrier.message, sample)));
    },
  };
}
