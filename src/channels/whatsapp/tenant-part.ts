import type { WhatsappAlias, WhatsappSender } from "../../domain/whatsapp.ts";
import type { TenantPart, TenantTable } from "../../storage/tenant-part.ts";
import { aliasOf } from "./alias-repository.ts";
import { parseWhatsappCredentials, whatsappCredentialsPlace } from "./credentials.ts";
import { aliases } from "./tables.ts";

interface WhatsappMembers {
  readonly whatsapp: {
    /** Null: the platform's sender. */
    readonly sender: WhatsappSender | null;
    /** By alias. */
    readonly aliases: ReadonlyMap<string, WhatsappAlias>;
  };
}

declare module "../../domain/tenant.ts" {
  interface ChannelMembers extends WhatsappMembers {}
}

const ALIASES: TenantTable<WhatsappAlias, typeof aliases.$inferSelect> = {
  table: aliases,
  key: { tenantId: aliases.tenantId, name: aliases.alias },
  sized: aliases.params,
  select: (db, where) => db.select().from(aliases).where(where),
  parse: (row) => [row.alias, aliasOf(row)],
};

/** The tenant's chat settings that are kept in memory. */
export const whatsappPart: TenantPart<WhatsappMembers> = {
  templates: {},
  tables: [ALIASES],
  members: ({ tenant, rows, credentials }) => ({
    whatsapp: {
      sender: tenant.allowCustom.includes("whatsapp")
        ? credentials(whatsappCredentialsPlace(tenant.id), parseWhatsappCredentials)
        : null,
      aliases: rows(ALIASES),
    },
  }),
};
