import type { VerifiedDomain } from "./domain.ts";
import type { EmailSender, EmailTemplate } from "./email.ts";
import type { ChannelName } from "./job.ts";
import type { AppleSigner, GoogleIssuer, WalletTemplate } from "./wallet.ts";
import type { WhatsappAlias, WhatsappSender } from "./whatsapp.ts";

/** Slug of a tenant: `^[a-z0-9][a-z0-9-]{0,62}$`. */
export const TENANT_ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export const PERMISSIONS = ["allow_raw_html"] as const;
export type Permission = (typeof PERMISSIONS)[number];

export interface Plan {
  readonly name: string;
  readonly requestsPerMinute: number;
  /** Null: as fast as the provider takes them. */
  readonly deliveriesPerSecond: number | null;
  /** Unfinished jobs that a tenant may have, and the bytes of their payloads together. */
  readonly queuedJobsMax: number;
  readonly queuedBytesMax: number;
  /** How long, from its acceptance, a job is held while its relay is away. */
  readonly holdMs: number;
}

/** What a plan allows of the queue where nobody has said otherwise. */
export type QueueShare = Pick<Plan, "queuedJobsMax" | "queuedBytesMax" | "holdMs">;

const HOUR_MS = 60 * 60 * 1000;
const MIB = 1024 * 1024;

export const QUEUE_SHARE: QueueShare = { queuedJobsMax: 2_000_000, queuedBytesMax: 2048 * MIB, holdMs: 72 * HOUR_MS };
/** Of the plan `free`. */
export const FREE_QUEUE_SHARE: QueueShare = {
  queuedJobsMax: 100_000,
  queuedBytesMax: 256 * MIB,
  holdMs: 72 * HOUR_MS,
};

export function queueShareOf(planName: string): QueueShare {
  return planName === "free" ? FREE_QUEUE_SHARE : QUEUE_SHARE;
}

/** Where a tenant's part of the queue is. */
export interface TenantRef {
  readonly tenantId: string;
  readonly shard: number;
}

/** All that the hot path needs to know of a tenant, as it was at most a second ago. Immutable. */
export interface Tenant extends TenantRef, ChannelMembers {
  readonly name: string;
  readonly plan: Plan;
  readonly channels: ReadonlySet<ChannelName>;
  readonly permissions: ReadonlySet<Permission>;
  /** Channels on which the tenant may use credentials of its own. */
  readonly allowCustom: ReadonlySet<ChannelName>;
}

/** What the channels add to a tenant. */
export interface ChannelMembers {
  readonly emailTemplates: ReadonlyMap<string, EmailTemplate>;
  /** Null: the platform's sender. */
  readonly emailSender: EmailSender | null;
  /** Its verified sending domains, by name. */
  readonly domains: ReadonlyMap<string, VerifiedDomain>;
  readonly whatsapp: TenantWhatsapp;
  readonly wallet: TenantWallet;
}

/** What a tenant has for the chat channel. */
export interface TenantWhatsapp {
  /** Null: the platform's. */
  readonly sender: WhatsappSender | null;
  /** By alias. */
  readonly aliases: ReadonlyMap<string, WhatsappAlias>;
}

/** What a tenant has for wallet passes. */
export interface TenantWallet {
  /** Null: the platform's. */
  readonly apple: AppleSigner | null;
  /** Null: the platform's. */
  readonly google: GoogleIssuer | null;
  readonly templates: ReadonlyMap<string, WalletTemplate>;
  /** Where device registrations are told, or null. */
  readonly webhookUrl: string | null;
}

/**
 * Tenants by key and by id, from memory while fresh. A value returned plainly (no promise) costs no turn of the event
 * loop; a promise is a load. Rejects with `UnavailableError` when the registry cannot be reached and nothing usable is
 * remembered.
 */
export interface TenantDirectory {
  /** The tenant that holds this API key, or null. */
  byApiKey(apiKey: string): Tenant | null | Promise<Tenant | null>;
  byId(tenantId: string): Tenant | null | Promise<Tenant | null>;
  /** The tenant as it is in memory, null where it is known to be gone; undefined: it would have to be loaded. */
  byIdNow?(tenantId: string): Tenant | null | undefined;
}
