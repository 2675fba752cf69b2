import type { ChannelName } from "../jobs/job.ts";

/** What may be shown of stored credentials: nothing that signs, logs in or lets a secret be guessed. */
export interface ShownCredentials {
  /** The first 16 hex digits of a SHA-256: equal for equal credentials. Never of a text that could be guessed. */
  readonly fingerprint: string;
  /** ISO 8601 UTC; null: they hold nothing that expires by itself. */
  readonly expires_at: string | null;
  /** Members of the kind, which identify the account, number or pass type. */
  readonly [member: string]: string | null;
}

/** How one kind of tenants' own credentials is stored. */
export interface CredentialForm {
  /** The last part of its path; also the kind in its secrets' place. */
  readonly kind: string;
  /** The channel that `allow_custom` must name for them to be used. */
  readonly channel: ChannelName;
  /** If they hold something that expires: what that is called, and which member of `show` names it. */
  readonly expires?: { readonly as: string; readonly namedBy: string };
  /** Of the opened secret. */
  show(text: string): ShownCredentials;
}

/** A kind's credentials as the operator sees them. */
export interface CredentialsRecord extends Record<string, string | boolean | null> {
  readonly kind: string;
  readonly channel: ChannelName;
  readonly used: boolean;
  readonly reason: string | null;
}

/** A certificate or key that ends by itself. */
export interface Expiring {
  /** Such as `apple_certificate` or `api_key`. */
  readonly kind: string;
  /** Null: the platform's own. */
  readonly tenantId: string | null;
  readonly name: string;
  /** Unix ms. */
  readonly expiresAtMs: number;
}

/** Why stored credentials of a channel are not used. */
export function whyUnused(channel: ChannelName): string {
  return `stored, not used because the tenant's allow_custom does not name ${channel}`;
}
