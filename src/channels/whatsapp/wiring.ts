import type { Config } from "../../config/config.ts";
import type { WhatsappSender } from "../../domain/channels/whatsapp.ts";
import { SUPPRESSION_REASONS } from "../../domain/jobs/job.ts";
import { normalisedRecipient } from "../../domain/tenants/recipient-index.ts";
import type { Shutdown } from "../../runtime/shutdown.ts";
import type { AppChannel, ChannelPorts, OpenChannel } from "../contract.ts";
import { CallbackData } from "./callbacks/callback-keys.ts";
import { CallbackParts } from "./callbacks/callback-parts.ts";
import { IncomingChat, type SuppressionsOfPeople } from "./callbacks/incoming-chat.ts";
import { WhatsappStatuses } from "./callbacks/statuses.ts";
import { chatWithPass } from "./carried-pass.ts";
import { whatsappContentKind } from "./content-kind.ts";
import { WHATSAPP_CREDENTIALS } from "./credential-kinds.ts";
import { whatsappEndpoints, whatsappRegistry } from "./endpoints.ts";
import { NumberOwners } from "./number-owners.ts";
import type { WhatsappPlatform } from "./platform.ts";
import type { WhatsappPorts } from "./ports.ts";
import { startGraphSandbox } from "./sandbox/graph-sandbox.ts";
import { TemplateDesk } from "./templates/template-desk.ts";
import { TemplateReader } from "./templates/template-reader.ts";
import { whatsappPart } from "./tenant-part.ts";
import { WhatsappChannel } from "./whatsapp-channel.ts";

export const whatsapp: AppChannel = {
  name: "whatsapp",
  letter: "w",
  endpoints: whatsappEndpoints,
  registry: whatsappRegistry,
  tenantPart: whatsappPart,
  credentialKinds: WHATSAPP_CREDENTIALS,
  contentKind: () => whatsappContentKind,
  fillPass: chatWithPass,
  checks: (config, reach) => ({ WhatsApp: () => reach(realWhatsappUrl(config)) }),
  open: openWhatsapp,
};

interface WhatsappApi {
  /** Takes the chat provider's callbacks. */
  readonly whatsapp: WhatsappPorts;
}

declare module "../contract.ts" {
  interface ChannelApi extends WhatsappApi {}
}

const PUBLIC_API_URL = "https://graph.facebook.com";
/** The platform's sender in the sandbox when none is configured. */
const SANDBOX_SENDER: WhatsappSender = { phoneNumberId: "100000000000001", accessToken: "sandbox-access-token" };

/** The platform's own phone number, or null. */
function platformWhatsapp(config: Config): WhatsappSender | null {
  const { whatsappPhoneNumberId: phoneNumberId, whatsappAccessToken: accessToken, providers } = config;
  if (phoneNumberId !== null && accessToken !== null) return { phoneNumberId, accessToken };
  return providers === "live" ? null : SANDBOX_SENDER;
}

/** The configured address or the public one; null: a sandbox stands in. */
function realWhatsappUrl({ whatsappApiUrl, providers }: Config): string | null {
  return whatsappApiUrl ?? (providers === "live" ? PUBLIC_API_URL : null);
}

function openWhatsapp(ports: ChannelPorts, shutdown: Shutdown): OpenChannel {
  const platform = { whatsapp: platformWhatsapp(ports.config) };
  const started = ports.delivers ? startWhatsapp(ports, platform, shutdown) : {};
  // The sandbox's address, where it runs in this process or in another of this start.
  const apiUrl = started.settings?.whatsappApiUrl ?? realWhatsappUrl(ports.config);
  return { platform, api: { whatsapp: openWebhook(ports, { platform, apiUrl }, shutdown) }, ...started };
}

/** The configured address, the public one, or a sandbox. */
function startWhatsapp(
  { config, clock, random, telemetry }: ChannelPorts,
  platform: WhatsappPlatform,
  shutdown: Shutdown,
): OpenChannel {
  const { whatsappApiVersion: apiVersion } = config;
  const callbacks = new CallbackData(config.masterKeys);
  const over = (apiUrl: string) => ({
    settings: { whatsappApiUrl: apiUrl },
    channel: () => new WhatsappChannel({ apiUrl, apiVersion, platform, callbacks, clock, random, telemetry }),
  });
  const realUrl = realWhatsappUrl(config);
  if (realUrl !== null) return over(realUrl);

  const [webhookSecret] = config.webhookSecrets;
  if (webhookSecret === undefined) throw new Error("the configuration has no webhook secret");
  const sandbox = startGraphSandbox({ webhookSecret, clock, random, telemetry });
  shutdown.add("providers", "chat sandbox", () => sandbox.stop());
  return { ...over(sandbox.url), inboxes: [sandbox.inbox], callBack: (apiUrl) => sandbox.callBack(apiUrl) };
}

interface Provider {
  readonly platform: WhatsappPlatform;
  /** Null: in no process of this start. */
  readonly apiUrl: string | null;
}

/** Creates the API's dependencies for the chat provider's callbacks. */
function openWebhook(ports: ChannelPorts, { platform, apiUrl }: Provider, shutdown: Shutdown): WhatsappPorts {
  const { config, queue, directory, eventStore, registry, news, clock, random, telemetry } = ports;
  const statuses = new WhatsappStatuses({
    queue,
    references: queue,
    directory,
    eventStore,
    callbacks: new CallbackData(config.masterKeys),
    platform,
    clock,
    random,
    telemetry,
  });
  // Stopped after the API, which hands over no more statuses by then.
  shutdown.add("history", "early statuses", () => statuses.stop());
  const { incomingMessages: messages, replyWindows: windows } = queue;
  const owners = new NumberOwners({ read: () => registry.ownNumbers(), clock });
  const heard = { messages, owners, news, platform, clock, telemetry };
  const suppressions = suppressionsOfPeople(ports);
  const incoming = new IncomingChat({ ...heard, windows, suppressions, references: queue });
  const { chatTemplates } = registry;
  const parts = new CallbackParts({ ...heard, accounts: queue.senderAccounts, templates: chatTemplates });
  shutdown.add("history", "chat parts", () => parts.stop());
  const reader = apiUrl === null ? null : new TemplateReader({ baseUrl: apiUrl, version: config.whatsappApiVersion });
  const templates = new TemplateDesk({ reader, store: chatTemplates, clock, telemetry });
  return { webhookSecrets: config.webhookSecrets, statuses, incoming, parts, messages, windows, templates };
}

function suppressionsOfPeople({ directory, queue, suppressions }: ChannelPorts): SuppressionsOfPeople {
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
