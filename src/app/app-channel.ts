import type { BouncedAddresses } from "../channels/email/bounced-addresses.ts";
import type { LinkSigner } from "../channels/email/links/link-tokens.ts";
import type { AppleBundles } from "../channels/wallet/apple/apple-bundles.ts";
import type { GoogleWallet } from "../channels/wallet/google/google-wallet.ts";
import type { PassDevices, PassStore } from "../channels/wallet/passes.ts";
import type { Config } from "../config/config.ts";
import type { PassFiller } from "../domain/channels/carried-pass.ts";
import type { Channel } from "../domain/channels/channel.ts";
import type { DomainSigning } from "../domain/channels/domain.ts";
import type { PlatformCredentials } from "../domain/channels/platform.ts";
import type { ContentStore } from "../domain/content-store.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { DeliveryReport, SandboxInbox } from "../domain/jobs/report.ts";
import type { RetryCharges } from "../domain/jobs/retry.ts";
import type { SuppressionLookup } from "../domain/tenants/suppressions.ts";
import type { ChannelMembers } from "../domain/tenants/tenant.ts";
import type { QueuedChannel } from "../engine/queue/codec.ts";
import type { ContentKind } from "../http/content-kind.ts";
import type { CredentialKind } from "../http/credential-kind.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { PassDesk } from "../http/sending/carried-pass.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import type { Registry, RegistryTools } from "../storage/registry.ts";
import type { SealedColumn } from "../storage/sealed-column.ts";
import { registryKeys } from "../storage/tables.ts";
import type { TenantPart } from "../storage/tenant-part.ts";
import { credentials } from "../tenants/tables.ts";
import { SEALED_WEBHOOK_COLUMNS } from "../webhooks/webhook-rows.ts";
import type { ApiPorts } from "./api-ports.ts";
import type { AwayParts } from "./away-parts.ts";
import type { Shutdown } from "./shutdown.ts";

/**
 * All that the app knows of a channel. A channel's own folder need not import this: its object has these members, and
 * each takes only what it uses.
 */
export interface AppChannel extends QueuedChannel {
  /** The call that sends, and all others. */
  endpoints(ports: ChannelApiPorts): readonly Endpoint[];
  /** Its part of the registry, for its endpoints; absent: none. */
  registry?(tools: RegistryTools): Partial<Registry>;
  /** Its part of each tenant in memory; absent: none. */
  readonly tenantPart?: TenantPart<object>;
  /** How operators write its templates; absent: it has none. */
  readonly templateKind?: TemplateKind;
  /** The kinds of tenants' own credentials; absent: none. */
  readonly credentialKinds?: readonly CredentialKind[];
  /** Renders its jobs' content for operators; absent: not shown. */
  contentKind?(ports: ApiPorts): ContentKind;
  /** How its payload takes the values and the file of a wallet pass; absent: its messages carry none. */
  readonly fillPass?: PassFiller;
  /** Charges for accepting a job, refunded after a failure; absent: none. */
  retryCharges?(registry: { readonly passes: PassStore }): RetryCharges;
  /** Where jobs are delivered: connects it to its provider, or starts the sandbox that stands in for one. */
  start(ports: ChannelPorts, shutdown: Shutdown): StartedChannel | Promise<StartedChannel>;
}

/** Dependencies of a channel's endpoints. */
export interface ChannelApiPorts extends ApiPorts {
  /** Takes passes that messages carry. */
  readonly passDesk: PassDesk;
}

/** Dependencies for the start of a channel. */
export interface ChannelPorts {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
  readonly platform: PlatformCredentials;
  readonly google: GoogleWallet;
  readonly reports: { take(report: DeliveryReport, channel?: ChannelName): unknown };
  readonly away: AwayParts;
  /** How many processes deliver: together they have as many connections to a relay as one may have. */
  readonly dispatchers: number;
}

export interface StartedChannel {
  /** Where its providers are. */
  readonly urls?: Partial<ProviderUrls>;
  /** Null: there is no sandbox. */
  readonly inbox?: SandboxInbox | null;
  /** Where the API is, for callbacks of the sandbox. */
  callBack?(apiUrl: string): void;
  /** Called once, when the API is reachable. */
  open(context: ChannelContext): Channel;
}

export type ProviderUrls = Pick<
  Config,
  "smtpUrl" | "whatsappApiUrl" | "googleWalletApiUrl" | "googleTokenUrl" | "googleCallbackKeysUrl" | "apnsUrl"
>;

/** Parts of the app that channels need. */
export interface ChannelContext {
  /** Where readers, devices and callbacks reach the API. */
  readonly publicUrl: string;
  readonly links: LinkSigner;
  readonly suppressions: SuppressionLookup;
  readonly bounces: BouncedAddresses;
  /** Files that jobs send. */
  readonly contents: Pick<ContentStore, "get">;
  readonly registry: {
    readonly passes: PassStore;
    readonly devices: PassDevices;
    readonly senderDomain: { readonly signing: DomainSigning | null };
  };
  readonly bundles: AppleBundles;
}

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

/** Of all channels that take something. */
export function createRetryCharges(
  channels: readonly AppChannel[],
  registry: { readonly passes: PassStore },
): RetryCharges {
  const charges = new Map(channels.map((channel) => [channel.name, channel.retryCharges?.(registry)]));
  return {
    take: async (tenantId, job, payload) => (await charges.get(job.channel)?.take(tenantId, job, payload)) ?? FREE,
    giveBack: async (tenantId, job) => charges.get(job.channel)?.giveBack(tenantId, job),
    discard: async (tenantId, job) => charges.get(job.channel)?.discard(tenantId, job),
  };
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
