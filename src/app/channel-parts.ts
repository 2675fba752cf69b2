import type { ChannelMembers } from "../domain/tenant.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { TenantPart } from "../storage/tenant-part.ts";
import { credentials } from "../tenants/tables.ts";
import type { AppChannel } from "./app-channel.ts";

/** What all channels together add to a tenant. */
export function tenantPartOf(channels: readonly AppChannel[]): TenantPart<ChannelMembers> {
  const parts = channels.flatMap(({ tenantPart }) => tenantPart ?? []);
  return {
    templates: Object.assign({}, ...parts.map(({ templates }) => templates)),
    tables: parts.flatMap(({ tables }) => tables),
    // Each member of the type is one of a listed channel's.
    members: (rows) => Object.assign({}, ...parts.map((part) => part.members(rows))) as ChannelMembers,
  };
}

/** Every column that holds secrets which the vault sealed. */
export function sealedColumnsOf(channels: readonly AppChannel[]) {
  return [credentials.sealed, ...channels.flatMap(({ tenantPart }) => tenantPart?.sealed ?? [])];
}

/** Of the channels whose messages can come from templates. */
export function templateKindsOf(channels: readonly AppChannel[]): readonly TemplateKind[] {
  return channels.flatMap(({ templateKind }) => templateKind ?? []);
}
