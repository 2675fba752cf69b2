import type { AppChannel, ChannelStores, PassOffice } from "../channels/contract.ts";
import type { PassFiller } from "../domain/channels/carried-pass.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { RetryCharges } from "../domain/jobs/retry.ts";
import type { ChannelMembers } from "../domain/tenants/tenant.ts";
import type { CredentialKind } from "../http/credential-kind.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { SealedColumn } from "../storage/sealed-column.ts";
import { registryKeys } from "../storage/tables.ts";
import type { TenantPart } from "../storage/tenant-part.ts";
import { credentials } from "../tenants/tables.ts";
import { SEALED_WEBHOOK_COLUMNS } from "../webhooks/webhook-rows.ts";

/** Joins the channels' parts of a tenant. */
export function joinTenantParts(channels: readonly AppChannel[]): TenantPart<ChannelMembers> {
  const parts = channels.flatMap(({ tenantPart }) => tenantPart ?? []);
  return {
    templates: Object.fromEntries(parts.flatMap(({ templates }) => Object.entries(templates))),
    tables: parts.flatMap(({ tables }) => tables),
    // Each member of the type is one of a listed channel's.
    members: (rows) => Object.assign({}, ...parts.map((part) => part.members(rows))) as ChannelMembers,
  };
}

const CREDENTIALS: SealedColumn = {
  name: "credentials",
  column: credentials.sealed,
  key: [credentials.tenantId, credentials.kind],
  tenantId: credentials.tenantId,
  place: (tenantId, [, kind = ""]) => ({ tenantId, kind, field: "credentials" }),
};

const REGISTRY_KEYS: SealedColumn = {
  name: "keys of the registry",
  column: registryKeys.sealed,
  key: [registryKeys.name],
  // They belong to no tenant, and their place does not ask.
  tenantId: registryKeys.name,
  place: (_tenantId, [name = ""]) => ({ tenantId: "", kind: "registry", field: name }),
};

/** Every column that holds secrets which the vault sealed. */
export function listSealedColumns(channels: readonly AppChannel[]): readonly SealedColumn[] {
  const ofChannels = channels.flatMap(({ tenantPart }) => tenantPart?.sealed ?? []);
  return [CREDENTIALS, REGISTRY_KEYS, ...SEALED_WEBHOOK_COLUMNS, ...ofChannels];
}

const FREE = { kind: "free" } as const;

/** Of all channels that take something. A message's pass is charged by the channel that makes passes. */
export function createRetryCharges(channels: readonly AppChannel[], stores: ChannelStores): RetryCharges {
  const carried = findPassOffice(channels)?.charges(stores);
  const charges = new Map(
    channels.map(({ name, fillPass, retryCharges }) => [
      name,
      fillPass === undefined ? retryCharges?.(stores) : carried,
    ]),
  );
  return {
    take: async (tenantId, job, payload) => (await charges.get(job.channel)?.take(tenantId, job, payload)) ?? FREE,
    giveBack: async (tenantId, job) => charges.get(job.channel)?.giveBack(tenantId, job),
    discard: async (tenantId, job) => charges.get(job.channel)?.discard(tenantId, job),
  };
}

/** The channel that makes the passes in other channels' messages. */
export function findPassOffice(channels: readonly AppChannel[]): PassOffice | undefined {
  return channels.find(({ carriedPasses }) => carriedPasses !== undefined)?.carriedPasses;
}

/** The fillers of the channels whose messages can carry passes. */
export function collectPassFillers(channels: readonly AppChannel[]): ReadonlyMap<ChannelName, PassFiller> {
  return new Map(channels.flatMap(({ name, fillPass }) => (fillPass === undefined ? [] : [[name, fillPass] as const])));
}

/** Returns the template kinds of all channels. */
export function listTemplateKinds(channels: readonly AppChannel[]): readonly TemplateKind[] {
  return channels.flatMap(({ templateKind }) => templateKind ?? []);
}

/** Of all channels. */
export function listCredentialKinds(channels: readonly AppChannel[]): readonly CredentialKind[] {
  return channels.flatMap(({ credentialKinds }) => credentialKinds ?? []);
}
