import type { VerifiedDomain } from "../../domain/domain.ts";
import type { EmailSender } from "../../domain/email.ts";
import type { Tenant } from "../../domain/tenant.ts";

/** How a tenant's e-mail may be sent under its own name. */
export type OwnSender =
  /** It has no sender of its own: the platform's is used, which needs no domain. */
  | { readonly kind: "platform" }
  | { readonly kind: "verified"; readonly sender: EmailSender; readonly domain: VerifiedDomain }
  /** `domain` is not verified, or not registered by this tenant, which is the same: it may not be sent from. */
  | { readonly kind: "unverified"; readonly domain: string };

/**
 * Decides whether the tenant may send as its own sender. A domain whose records are verified may be sent from by any
 * way. One whose own relay alone is verified may only be sent from through that relay: through the platform's, its mail
 * would be signed by nobody.
 */
export function ownSenderOf({ emailSender, domains }: Pick<Tenant, "emailSender" | "domains">): OwnSender {
  if (emailSender === null) return { kind: "platform" };
  const name = emailSender.fromAddress.slice(emailSender.fromAddress.lastIndexOf("@") + 1).toLowerCase();
  const domain = domains.get(name);
  const isVerified = domain !== undefined && (domain.relay !== null || (domain.smtp && emailSender.smtpUrl !== null));
  return isVerified ? { kind: "verified", sender: emailSender, domain } : { kind: "unverified", domain: name };
}
