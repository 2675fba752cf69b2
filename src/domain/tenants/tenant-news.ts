import type { ChannelName } from "../jobs/job.ts";
import type { JsonObject } from "../texts/json.ts";

export const NEWS_TYPES = ["message.received", "message.unknown", "account.updated", "pass.personalized"] as const;
export type NewsType = (typeof NEWS_TYPES)[number];

/** Something that a tenant is to hear of and that is no event of one of its messages. */
export interface TenantNews {
  readonly tenantId: string;
  /** The same whenever this is told again, and no other news' of the tenant. */
  readonly id: string;
  readonly type: NewsType;
  readonly channel: ChannelName;
  /** Unix milliseconds at which it happened. */
  readonly atMs: number;
  readonly data: JsonObject;
}

/** Takes what tenants are to hear of. */
export interface TenantNewsDesk {
  /**
   * Resolves when all of it is on disk, in the order of each tenant's. May be told the same repeatedly: its caller tells
   * it again where it does not know whether this took effect. Rejects with `TransportError` (effect unknown) or
   * `UnavailableError`.
   */
  tell(news: readonly TenantNews[]): Promise<void>;
  /** Whether a webhook of the tenant asks for such news, so that it is kept. Rejects with `UnavailableError`. */
  isAskedFor(news: Pick<TenantNews, "tenantId" | "type" | "channel">): Promise<boolean>;
}
