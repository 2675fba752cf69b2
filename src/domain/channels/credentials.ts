import type { ChannelName } from "../jobs/job.ts";

/** The public part of stored credentials. Contains no text that signs, logs in or lets a secret be guessed. */
export interface ShownCredentials {
  /**
   * The first 16 hex digits of a SHA-256: equal for equal credentials. Never computed from a text that could be
   * guessed.
   */
  readonly fingerprint: string;
  /** ISO 8601 UTC; null: none of these credentials expires by itself. */
  readonly expires_at: string | null;
  /** Members of this kind of credentials that identify the account, number or pass type. */
  readonly [member: string]: string | null;
}

/** How one kind of tenants' own credentials is stored. */
export interface CredentialForm {
  /** The last part of its path; also the kind under which its secrets are encrypted. */
  readonly kind: string;
  /** The channel that `allow_custom` must name for them to be used. */
  readonly channel: ChannelName;
  /** If a part of them expires: the name of that part, and the member of `show` that identifies it. */
  readonly expires?: { readonly as: string; readonly namedBy: string };
  /** Returns the public part of a decrypted secret. */
  show(text: string): ShownCredentials;
}

/** A kind's credentials as the operator sees them. */
export interface CredentialsRecord extends Record<string, string | boolean | null> {
  readonly kind: string;
  readonly channel: ChannelName;
  readonly used: boolean;
  readonly reason: string | null;
}

/** A certificate or key with an expiry date. */
export interface Expiring {
  /** Such as `apple_certificate` or `api_key`. */
  readonly kind: string;
  /** Null: the platform's own. */
  readonly tenantId: string | null;
  readonly name: string;
  /** Unix ms. */
  readonly expiresAtMs: number;
}

/** Returns the reason why stored credentials of a channel are not used. */
export function whyUnused(channel: ChannelName): string {
  return `stored, not used because the tenant's allow_custom does not name ${channel}`;
}
