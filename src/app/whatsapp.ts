import { CallbackData } from "../channels/whatsapp/callbacks/callback-keys.ts";
import { CallbackParts } from "../channels/whatsapp/callbacks/callback-parts.ts";
import { IncomingChat, type SuppressionsOfPeople } from "../channels/whatsapp/callbacks/incoming-chat.ts";
import { WhatsappStatuses } from "../channels/whatsapp/callbacks/statuses.ts";
import { NumberOwners } from "../channels/whatsapp/number-owners.ts";
import type { WhatsappPorts } from "../channels/whatsapp/ports.ts";
import { startGraphSandbox } from "../channels/whatsapp/sandbox/graph-sandbox.ts";
import { TemplateDesk } from "../channels/whatsapp/templates/template-desk.ts";
import { TemplateReader } from "../channels/whatsapp/templates/template-reader.ts";
import { WhatsappChannel } from "../channels/whatsapp/whatsapp-channel.ts";
import type { Config } from "../config/config.ts";
import type { PlatformCredentials } from "../domain/channels/platform.ts";
import type { WhatsappSender } from "../domain/channels/whatsapp.ts";
import type { EventReader } from "../domain/jobs/event-store.ts";
import { SUPPRESSION_REASONS } from "../domain/jobs/job.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { normalisedRecipient } from "../domain/tenants/recipient-index.ts";
import type { TenantDirectory } from "../domain/tenants/tenant.ts";
import type { TenantNewsDesk } from "../domain/tenants/tenant-news.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { Registry } from "../storage/registry.ts";
import type { SuppressionList } from "../tenants/suppression-list.ts";
import type { ChannelPorts, ProviderUrls, StartedChannel } from "./app-channel.ts";
import type { Shutdown } from "./shutdown.ts";

const PUBLIC_API_URL = "https://graph.facebook.com";
/** The platform's sender in the sandbox when none is configured. */
const SANDBOX_SENDER: WhatsappSender = { phoneNumberId: "100000000000001", accessToken: "sandbox-access-token" };

/** The platform's own phone number, or null. */
export function platformWhatsapp(config: Config): WhatsappSender | null {
  const { whatsappPhoneNumberId: phoneNumberId, whatsappAccessToken: accessToken, providers } = config;
  if (phoneNumberId !== null && accessToken !== null) return { phoneNumberId, accessToken };
  return providers === "live" ? null : SANDBOX_SENDER;
}

/** The configured address or the public one; null: a sandbox stands in. */
export function realWhatsappUrl({ whatsappApiUrl, providers }: Config): string | null {
  return whatsappApiUrl ?? (providers === "live" ? PUBLIC_API_URL : null);
}

/** The configured address, the public one, or a sandbox. */
export function startWhatsapp({ config, telemetry, platform }: ChannelPorts, shutdown: Shutdown): StartedChannel {
  const { whatsappApiVersion: apiVersion } = config;
  const callbacks = new CallbackData(config.masterKeys);
  const over = (apiUrl: string) => ({
    urls: { whatsappApiUrl: apiUrl },
    open: () =>
      new WhatsappChannel({
        apiUrl,
        apiVersion,
        platform,
        callbacks,
        clock: systemClock,
        random: systemRandom,
        telemetry,
      }),
  });
  const realUrl = realWhatsappUrl(config);
  if (realUrl !== null) return over(realUrl);

  const [webhookSecret] = config.webhookSecrets;
  if (webhookSecret === undefined) throw new Error("the configuration has no webhook secret");
  const sandbox = startGraphSandbox({ webhookSecret, clock: systemClock, random: systemRandom, telemetry });
  shutdown.add("providers", "chat sandbox", () => sandbox.stop());
  return { ...over(sandbox.url), inbox: sandbox.inbox, callBack: (apiUrl) => sandbox.callBack(apiUrl) };
}

interface WebhookContext {
  readonly config: Config;
  readonly queue: RedisQueue;
  readonly directory: TenantDirectory;
  readonly eventStore: { readonly reader: EventReader };
  readonly registry: { readonly registry: Pick<Registry, "ownNumbers" | "chatTemplates"> };
  readonly urls: Pick<ProviderUrls, "whatsappApiUrl">;
  readonly platform: PlatformCredentials;
  readonly news: TenantNewsDesk;
  readonly suppressions: Pick<SuppressionList, "put">;
  readonly telemetry: Telemetry;
}

/** Creates the API's dependencies for the chat provider's callbacks. */
export function openWhatsappWebhook(context: WebhookContext, shutdown: Shutdown): WhatsappPorts {
  const { config, queue, directory, eventStore, platform, urls, news, telemetry } = context;
  const { registry } = context.registry;
  const statuses = new WhatsappStatuses({
    queue,
    references: queue,
    directory,
    eventStore: eventStore.reader,
    callbacks: new CallbackData(config.masterKeys),
    platform,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  // Stopped after the API, which hands over no more statuses by then.
  shutdown.add("history", "early statuses", () => statuses.stop());
  const [messages, windows, clock] = [queue.incomingMessages, queue.replyWindows, systemClock];
  const owners = new NumberOwners({ read: () => registry.ownNumbers(), clock });
  const heard = { messages, owners, news, platform, clock, telemetry };
  const suppressions = suppressionsOfPeople(context);
  const incoming = new IncomingChat({ ...heard, windows, suppressions, references: queue });
  const { chatTemplates } = registry;
  const parts = new CallbackParts({ ...heard, accounts: queue.senderAccounts, templates: chatTemplates });
  shutdown.add("history", "chat parts", () => parts.stop());
  // The sandbox's address, where it runs in this process or in another of this start.
  const baseUrl = urls.whatsappApiUrl ?? realWhatsappUrl(config);
  const reader = baseUrl === null ? null : new TemplateReader({ baseUrl, version: config.whatsappApiVersion });
  const templates = new TemplateDesk({ reader, store: chatTemplates, clock, telemetry });
  return { webhookSecrets: config.webhookSecrets, statuses, incoming, parts, messages, windows, templates };
}

function suppressionsOfPeople({ directory, queue, suppressions }: WebhookContext): SuppressionsOfPeople {
  return {
    async follow(tenantId, former, others) {
      const tenant = await directory.byId(tenantId);
      if (tenant === null) return;
      const names = [...former, ...others].map(normalisedRecipient);
      // An erased recipient is not on the list for that reason.
      const message = { acceptedMs: Number.POSITIVE_INFINITY, topic: undefined };
      const found = await queue.suppressedAmong(tenant, names, message);
      const [stop] = former.flatMap((name) => found.get(normalisedRecipient(name)) ?? []);
      const reason = SUPPRESSION_REASONS.find((known) => known === stop?.reason);
      if (reason === undefined) return;
      const missing = others.map(normalisedRecipient).filter((name) => !found.has(name));
      for (const name of missing) await suppressions.put(tenant, name, reason);
    },
  };
}
