import type { JsonObject } from "./json.ts";

/** Payload of an e-mail job, as intake writes it and the e-mail channel reads it. */
export interface EmailPayload {
  readonly to: string;
  readonly toName?: string;
  /** Overrides the template's subject. */
  readonly subject?: string;
  /** Slug of a registered template; exactly one of `template` and `html` is there. */
  readonly template?: string;
  readonly html?: string;
  readonly data?: JsonObject;
}

/** Slug of a template. */
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
  /** The tenant's own relay; null submits to the platform's. */
  readonly smtpUrl: string | null;
  /** The UTC day on which its dedicated address began to send, `YYYY-MM-DD`: it is warmed up. Absent: it need not be. */
  readonly warmUpFrom?: string;
}

/** The key that a suppression is kept under: addresses are compared without regard to case. */
export function normaliseAddress(address: string): string {
  return address.toLowerCase();
}

/**
 * Whether the domain of an address names a machine in place of a domain: an address literal (RFC 5321, 4.1.3), what
 * resolvers read as an IPv4 address (no top-level domain is a number), or the machine that looks it up (RFC 6761, 6.3).
 * A mail server connects to such a machine itself, and stands where no tenant does.
 */
export function namesMachine(domain: string): boolean {
  return /^\[|(?:^|\.)(?:\d+|0x[0-9a-f]*|localhost)\.?$/i.test(domain);
}
