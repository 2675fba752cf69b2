import type { ChannelName } from "../jobs/job.ts";
import type { JsonObject } from "../texts/json.ts";

export const NEWS_TYPES = [
  "message.received",
  "message.unknown",
  "account.updated",
  "pass.personalized",
  "reputation.warned",
  "reputation.slowed",
  "reputation.held",
  "reputation.released",
] as const;
export type NewsType = (typeof NEWS_TYPES)[number];

/** An update for a tenant that is not an event of one of its messages. */
export interface TenantNews {
  readonly tenantId: string;
  /** The same whenever this update is repeated, and unique among the tenant's updates. */
  readonly id: string;
  readonly type: NewsType;
  readonly channel: ChannelName;
  /** Unix milliseconds at which it happened. */
  readonly atMs: number;
  readonly data: JsonObject;
}

/** Receives updates for tenants. */
export interface TenantNewsDesk {
  /**
   * Resolves when all of them are on disk, in the order of each tenant's updates. An update may be repeated: callers
   * repeat it if they do not know whether the call took effect. Rejects with `TransportError` (effect unknown) or
   * `UnavailableError`.
   */
  tell(news: readonly TenantNews[]): Promise<void>;
  /**
   * Whether a webhook of the tenant subscribes to such updates, so that they are kept. Rejects with `UnavailableError`.
   */
  isAskedFor(news: Pick<TenantNews, "tenantId" | "type" | "channel">): Promise<boolean>;
}
