import type { Config } from "../config/config.ts";
import type { CarriedPasses, PassFiller } from "../domain/channels/carried-pass.ts";
import type { Channel } from "../domain/channels/channel.ts";
import type { Expiring } from "../domain/channels/credentials.ts";
import type { IncomingMessages } from "../domain/channels/incoming-messages.ts";
import type { PlatformCredentials } from "../domain/channels/platform.ts";
import type { ReplyWindows } from "../domain/channels/reply-windows.ts";
import type { SenderAccounts } from "../domain/channels/sender-accounts.ts";
import type { Clock } from "../domain/clock.ts";
import type { ContentStore } from "../domain/content-store.ts";
import type { Health } from "../domain/health.ts";
import type { JobIds } from "../domain/ids.ts";
import type { EventReader } from "../domain/jobs/event-store.ts";
import type { ChannelName, JobRecord, SuppressionReason } from "../domain/jobs/job.ts";
import type { FrontQueue, IdempotencyKeys, ProviderReferences } from "../domain/jobs/queue.ts";
import type { DeliveryReport, DeviceComplaint, Engagement, SandboxInbox } from "../domain/jobs/report.ts";
import type { RetryCharges } from "../domain/jobs/retry.ts";
import type { Random } from "../domain/random.ts";
import type { Done, Missing } from "../domain/store-result.ts";
import type { SeriesGauges, Telemetry } from "../domain/telemetry.ts";
import type { SuppressionLookup } from "../domain/tenants/suppressions.ts";
import type { Tenant, TenantDirectory, TenantRef } from "../domain/tenants/tenant.ts";
import type { TenantNewsDesk } from "../domain/tenants/tenant-news.ts";
import type { ContentKind } from "../http/content-kind.ts";
import type { CredentialKind } from "../http/credential-kind.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { DoorPorts } from "../http/front-door.ts";
import type { PassDesk } from "../http/sending/carried-pass.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import type { Registry, RegistryTools } from "../storage/registry.ts";
import type { TenantPart } from "../storage/tenant-part.ts";

/**
 * All that the app knows of a channel. A channel's own folder need not import this: its object has these members, and
 * each takes only what it uses.
 */
export interface AppChannel {
  readonly name: ChannelName;
  /** One lower-case letter, its own. It is in stored jobs, so it never changes. */
  readonly letter: string;
  /** The call that sends, and all others. */
  endpoints(ports: ChannelApiPorts): readonly Endpoint[];
  /** Its part of the registry, for its endpoints; absent: none. */
  registry?(tools: RegistryTools): Partial<Registry>;
  /** Its stores beside the registry; absent: none. */
  stores?(tools: ChannelTools): Partial<ChannelStores>;
  /** Its part of each tenant in memory; absent: none. */
  readonly tenantPart?: TenantPart<object>;
  /** How operators write its templates; absent: it has none. */
  readonly templateKind?: TemplateKind;
  /** The kinds of tenants' own credentials; absent: none. */
  readonly credentialKinds?: readonly CredentialKind[];
  /** Renders its jobs' content for operators; absent: not shown. */
  contentKind?(ports: ChannelApi): ContentKind;
  /** Adds parts of a job's result that are not stored with it, to jobs of any channel; absent: it has none. */
  completeResult?(ports: ChannelApi, tenant: Tenant, job: JobRecord): Promise<JobRecord>;
  /** Charges for accepting a job, refunded after a failure; absent: none. */
  retryCharges?(stores: ChannelStores): RetryCharges;
  /** How its payload takes the values and the file of a wallet pass; absent: its messages carry none. */
  readonly fillPass?: PassFiller;
  /** How messages of channels with `fillPass` come to passes; absent: it makes none. */
  readonly carriedPasses?: PassOffice;
  /** The checks of `waybill check`, by name; each returns its findings. */
  checks?(config: Config, reach: Reach): Readonly<Record<string, () => Promise<string>>>;
  /** In each process, before the API is reachable. */
  open(ports: ChannelPorts, shutdown: Shutdown): OpenChannel | Promise<OpenChannel>;
}

/** Whether something takes connections at an address or URL, in words; null: a sandbox stands in. */
export type Reach = (at: string | { readonly host: string; readonly port: number } | null) => Promise<string>;

/** How messages come to the passes of the channel that makes them. */
export interface PassOffice {
  /** Takes passes that messages carry. */
  desk(ports: Omit<ChannelApiPorts, "passDesk">): PassDesk;
  /** Charges for accepting such a message. */
  charges(stores: ChannelStores): RetryCharges;
}

/**
 * The channels' stores beside their part of the registry. Each adds its own with `declare module`, beside the function that
 * makes it; so do the two below.
 */
export interface ChannelStores {}

/** The channels' own dependencies of their endpoints. */
export interface ChannelApi {}

/** Dependencies of the channels' stores. */
export interface ChannelTools extends RegistryTools {
  readonly telemetry: Telemetry;
  /** The platform sender's own domain: lower case, ASCII. */
  readonly senderDomain: string;
  /** Reads again what belongs to the platform: at the start, and whenever operators changed something, in any process. */
  follow(refresh: () => Promise<void>): void;
}

/** Dependencies of a channel's endpoints. */
export interface ChannelApiPorts extends DoorPorts, ChannelApi {
  readonly queue: FrontQueue & IdempotencyKeys;
  readonly registry: Registry;
  readonly random: Random;
  /** Provider credentials of tenants without their own. */
  readonly platform: PlatformCredentials;
  /** The recipients that a tenant must not send to. */
  readonly suppressions: {
    /** Puts it on the list, for the topic alone if there is one, and skips the write where it is there for this reason. */
    ensure(tenant: Tenant, of: LinkedRecipient, reason: "unsubscribed"): Promise<Done<unknown> | Missing<"tenant">>;
    /** Takes it off the list, if it is there for this reason. */
    remove(tenant: Tenant, name: string, reason: "unsubscribed"): Promise<Done<unknown> | Missing<"tenant">>;
  };
  /** Takes readers' opens and clicks; returns at once. */
  readonly engagements: { note(engagement: Engagement): void };
  /** Takes passes that messages carry. */
  readonly passDesk: PassDesk;
}

/** The recipient of a job, as a link names them; with the topic that it is about alone. */
interface LinkedRecipient {
  readonly jobId: string;
  readonly recipient: string;
  readonly topic?: string;
}

/** Dependencies of a channel when it opens. */
export interface ChannelPorts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry & SeriesGauges;
  readonly registry: Registry;
  readonly stores: ChannelStores;
  readonly directory: TenantDirectory;
  readonly queue: ChannelQueue;
  readonly eventStore: Pick<EventReader, "job">;
  /** Puts recipients on tenants' lists. Rejects while the list is away. */
  readonly suppressions: { put(tenant: TenantRef, name: string, reason: SuppressionReason): Promise<unknown> };
  /** Takes what providers report about messages, and repeats it until it is recorded or `givenUp` aborts. */
  readonly reports: { take(report: DeliveryReport, channel?: ChannelName, givenUp?: AbortSignal): Promise<void> };
  /** Finds the owner of a job in the queue or in the event store; null: unknown. */
  readonly owners: { findOwner(jobId: string): Promise<string | null> };
  /** Takes what tenants are to hear of over their webhooks. */
  readonly news: TenantNewsDesk;
  /** For `/ready`: parts whose absence does not stop the work. */
  readonly away: { addPart(part: string, health: () => Health): void };
  /** Whether jobs are delivered from here: by this process, or by others to the sandboxes in this one. */
  readonly delivers: boolean;
  /** How many processes deliver: together they have as many connections to a relay as one may have. */
  readonly dispatchers: number;
  /** Whether this process looks for what others have left unfinished; one that can read the event store does. */
  readonly sweeps: boolean;
  /** Where readers, devices and callbacks reach the API; known for certain once it listens. */
  publicUrl(): string;
}

/** The queue's ports for channels. */
export interface ChannelQueue extends FrontQueue, SuppressionLookup, ProviderReferences {
  /** Messages that people wrote to tenants. */
  readonly incomingMessages: IncomingMessages;
  readonly replyWindows: ReplyWindows;
  readonly senderAccounts: SenderAccounts;
}

/** A channel in a process. All that is absent, it has not. */
export interface OpenChannel {
  /** Its own dependencies of its endpoints. */
  readonly api?: Partial<ChannelApi>;
  /** The platform's credentials for its provider. */
  readonly platform?: Partial<PlatformCredentials>;
  /** Settings of the start's other processes: where the sandbox is, which runs in this one alone. */
  readonly settings?: Partial<Config>;
  /** The messages of its sandboxes. */
  readonly inboxes?: readonly SandboxInbox[];
  /** Tells the sandbox where the API is, for callbacks. */
  callBack?(apiUrl: string): void;
  /** Makes the passes that messages carry. */
  readonly messagePasses?: CarriedPasses;
  /** Updates time-dependent metrics. */
  measure?(): void;
  /** Certificates and keys of the platform that end by themselves. */
  expiring?(): readonly Expiring[];
  /** The complaints of people's devices, newest first. */
  complaints?(limit: number): readonly DeviceComplaint[];
  /** Removes a piece of what a deleted tenant has outside the registry. Resolves to whether all of it is gone. */
  removeOfTenant?(tenantId: string): Promise<boolean>;
  /** Takes messages at an address beside the API's, which it resolves to; null: not in this process. */
  listen?(door: DoorPorts): Promise<string | null>;
  /** Finishes what the API's last requests began, within the time for that since `fromMs` (monotonic). */
  drain?(fromMs: number): Promise<void>;
  /** Called once, when the API is reachable, in processes that deliver. */
  channel?(context: { readonly contents: Pick<ContentStore, "get"> }): Channel;
}
