import { emailTemplateKind } from "../channels/email/template-kind.ts";
import { emailPart } from "../channels/email/tenant-part.ts";
import { walletTemplateKind } from "../channels/wallet/template-kind.ts";
import { walletPart } from "../channels/wallet/tenant-part.ts";
import { whatsappPart } from "../channels/whatsapp/tenant-part.ts";
import type { ChannelMembers } from "../domain/tenant.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { TenantPart } from "../storage/tenant-part.ts";

/** What all channels together add to a tenant. */
export const CHANNEL_PARTS: TenantPart<ChannelMembers> = {
  templates: { ...emailPart.templates, ...whatsappPart.templates, ...walletPart.templates },
  tables: [...emailPart.tables, ...whatsappPart.tables, ...walletPart.tables],
  members: (rows) => ({ ...emailPart.members(rows), ...whatsappPart.members(rows), ...walletPart.members(rows) }),
};

/** The channels whose messages can come from templates. */
export const TEMPLATE_KINDS: readonly TemplateKind[] = [emailTemplateKind, walletTemplateKind];
