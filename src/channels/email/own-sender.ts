import type { VerifiedDomain } from "../../domain/channels/domain.ts";
import type { EmailSender } from "../../domain/channels/email.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { extractDomain } from "../../domain/texts/split-address.ts";

/** Whether and how a tenant's e-mail may be sent under its own name. */
export type OwnSender =
  /** The tenant has no sender of its own; the platform's sender needs no domain. */
  | { readonly kind: "platform" }
  | { readonly kind: "verified"; readonly sender: EmailSender; readonly domain: VerifiedDomain }
  /** `domain` must not be sent from: it is not verified, or not registered by this tenant, which has the same effect. */
  | { readonly kind: "unverified"; readonly domain: string };

/**
 * Decides whether the tenant may send as its own sender. A domain whose records are verified may be sent from through any
 * relay. A domain with only its own relay verified may be sent from only through that relay: mail through the platform's relay
 * would be unsigned.
 */
export function findOwnSender({ emailSender, domains }: Pick<Tenant, "emailSender" | "domains">): OwnSender {
  if (emailSender === null) return { kind: "platform" };
  const name = extractDomain(emailSender.fromAddress).toLowerCase();
  const domain = domains.get(name);
  const isVerified = domain !== undefined && (domain.relay !== null || (domain.smtp && emailSender.smtpUrl !== null));
  return isVerified ? { kind: "verified", sender: emailSender, domain } : { kind: "unverified", domain: name };
}
