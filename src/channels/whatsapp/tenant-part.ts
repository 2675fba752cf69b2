import type { WhatsappAlias, WhatsappSender } from "../../domain/channels/whatsapp.ts";
import type { TenantPart, TenantTable } from "../../storage/tenant-part.ts";
import { parseWhatsappCredentials, whatsappCredentialsPlace } from "./credentials.ts";
import { aliases, chatTemplates } from "./tables.ts";
import { toAlias } from "./templates/alias-repository.ts";
import type { TemplateList } from "./templates/template-list.ts";
import { toTemplateList } from "./templates/template-repository.ts";

interface WhatsappMembers {
  readonly whatsapp: {
    /** Null: the platform's sender. */
    readonly sender: WhatsappSender | null;
    /** By alias. */
    readonly aliases: ReadonlyMap<string, WhatsappAlias>;
    /** The templates of the sender's account; null if they were never read or the sender names no account. */
    readonly templates: TemplateList | null;
  };
}

declare module "../../domain/tenants/tenant.ts" {
  interface ChannelMembers extends WhatsappMembers {}
}

const ALIASES: TenantTable<WhatsappAlias, typeof aliases.$inferSelect> = {
  table: aliases,
  key: { tenantId: aliases.tenantId, name: aliases.alias },
  sized: aliases.params,
  select: (db, where) => db.select().from(aliases).where(where),
  parse: (row) => [row.alias, toAlias(row)],
};

const TEMPLATES: TenantTable<TemplateList, typeof chatTemplates.$inferSelect> = {
  table: chatTemplates,
  key: { tenantId: chatTemplates.tenantId, name: chatTemplates.accountId },
  sized: chatTemplates.templates,
  select: (db, where) => db.select().from(chatTemplates).where(where),
  parse: (row) => [row.accountId, toTemplateList(row)],
};

/** The part of the tenant's snapshot that has its chat settings. */
export const whatsappPart: TenantPart<WhatsappMembers> = {
  templates: {},
  tables: [ALIASES, TEMPLATES],
  members: ({ tenant, rows, credentials }) => {
    const sender = tenant.allowCustom.includes("whatsapp")
      ? credentials(whatsappCredentialsPlace(tenant.id), parseWhatsappCredentials)
      : null;
    const templates = rows(TEMPLATES).get(sender?.accountId ?? "") ?? null;
    return { whatsapp: { sender, aliases: rows(ALIASES), templates } };
  },
};
