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
