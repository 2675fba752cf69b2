export const TEMPLATE_SLUG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** A registered e-mail template, before its placeholders are filled. */
export interface EmailTemplate {
  readonly subject: string;
  readonly html: string;
  readonly text: string | null;
}

/** A tenant's own sender. */
export interface EmailSender {
  readonly fromAddress: string;
  readonly fromName: string | null;
  /** The tenant's own relay; null uses the platform's. */
  readonly smtpUrl: string | null;
  /**
   * The UTC day on which its dedicated address began to send, `YYYY-MM-DD`, for an address that must be warmed up.
   * Absent: no warm-up.
   */
  readonly warmUpFrom?: string;
}

/** The key under which a suppression is stored: addresses are compared case-insensitively. */
export function normaliseAddress(address: string): string {
  return address.toLowerCase();
}

/**
 * Whether the domain part of an address names a machine: an address literal (RFC 5321, 4.1.3), a text that resolvers
 * read as an IPv4 address (no top-level domain is a number), or the resolving machine itself (RFC 6761, 6.3). A mail
 * server connects to such a machine directly, from a place in the network where no tenant is.
 */
export function namesMachine(domain: string): boolean {
  return /^\[|(?:^|\.)(?:\d+|0x[0-9a-f]*|localhost)\.?$/i.test(domain);
}
