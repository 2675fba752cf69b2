import type { VerifiedDomain } from "../../domain/channels/domain.ts";
import type { EmailSender, EmailTemplate, TrackingChoice } from "../../domain/channels/email.ts";
import type { StoredTemplates, TenantPart, TenantTable } from "../../storage/tenant-part.ts";
import { parseEmailTemplate } from "./content/stored-template.ts";
import { emailCredentialsPlace, parseEmailCredentials } from "./credentials.ts";
import { keyPlace, toVerifiedDomain } from "./domains/domain-repository.ts";
import { senderKeyPlace } from "./domains/sender-domain-repository.ts";
import { domains, senderDomains } from "./tables.ts";

interface EmailMembers {
  readonly emailTemplates: ReadonlyMap<string, EmailTemplate>;
  /** Null for the platform's sender. */
  readonly emailSender: EmailSender | null;
  /** The tenant's verified sending domains, by name. */
  readonly domains: ReadonlyMap<string, VerifiedDomain>;
  /** The tenant's own choice; nearly all tenants have none. */
  readonly tracking?: TrackingChoice;
}

declare module "../../domain/tenants/tenant.ts" {
  interface ChannelMembers extends EmailMembers {}
}

const TEMPLATES: StoredTemplates<EmailTemplate> = { parse: parseEmailTemplate };

const VERIFIED_DOMAINS: TenantTable<VerifiedDomain, typeof domains.$inferSelect> = {
  table: domains,
  key: { tenantId: domains.tenantId, name: domains.domain },
  sized: domains.privateKey,
  select: (db, where) => db.select().from(domains).where(where),
  parse(row, vault) {
    const verified = toVerifiedDomain(row, vault);
    return verified === null ? null : [row.domain, verified];
  },
};

/** The e-mail part of a tenant's snapshot in memory. */
export const emailPart: TenantPart<EmailMembers> = {
  templates: { email: TEMPLATES },
  tables: [VERIFIED_DOMAINS],
  sealed: [
    {
      name: "DKIM keys",
      column: domains.privateKey,
      key: [domains.domain],
      tenantId: domains.tenantId,
      place: (tenantId, [domain = ""]) => keyPlace(tenantId, domain),
    },
    {
      name: "the DKIM key of the platform's sender",
      column: senderDomains.privateKey,
      key: [senderDomains.domain],
      // The key belongs to no tenant, and its location ignores the tenant.
      tenantId: senderDomains.domain,
      place: (_tenantId, [domain = ""]) => senderKeyPlace(domain),
    },
  ],
  members: ({ tenant, templates, rows, credentials }) => ({
    emailTemplates: templates(TEMPLATES),
    emailSender: tenant.allowCustom.includes("email")
      ? credentials(emailCredentialsPlace(tenant.id), parseEmailCredentials)
      : null,
    domains: rows(VERIFIED_DOMAINS),
    ...(Object.keys(tenant.tracking).length > 0 && { tracking: tenant.tracking }),
  }),
};
