import type { Clock } from "../../domain/clock.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { TenantDirectory } from "../../domain/tenants/tenant.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { PassDesk } from "../../http/sending/carried-pass.ts";
import type { RegistryTools } from "../../storage/registry.ts";
import { incomingMessageEndpoint } from "./callbacks/incoming-message-endpoint.ts";
import { webhookEndpoints } from "./callbacks/webhook-endpoints.ts";
import { type CredentialStore, credentialEndpoint } from "./credential-endpoint.ts";
import { parseWhatsappCredentials, WHATSAPP_KIND, whatsappSecret } from "./credentials.ts";
import type { WhatsappPlatform } from "./platform.ts";
import type { WhatsappPorts } from "./ports.ts";
import { sendWhatsapp, sendWhatsappBatch } from "./send-endpoint.ts";
import { type Aliases, aliasEndpoints } from "./templates/alias-endpoints.ts";
import { AliasRepository } from "./templates/alias-repository.ts";
import { templateEndpoints } from "./templates/template-endpoints.ts";
import { TemplateRepository } from "./templates/template-repository.ts";

interface WhatsappRegistry extends CredentialStore {
  readonly aliases: Aliases;
  readonly chatTemplates: TemplateRepository;
  /** Returns the number ids of all tenants that have a sending number of their own, by tenant. */
  ownNumbers(): Promise<ReadonlyMap<string, string>>;
}

interface EndpointPorts {
  readonly platform: WhatsappPlatform;
  readonly registry: WhatsappRegistry;
  readonly whatsapp: WhatsappPorts;
  readonly directory: TenantDirectory;
  /** Accepts passes that messages carry. */
  readonly passDesk: PassDesk;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Lists all endpoints of the chat channel. */
export function whatsappEndpoints(ports: EndpointPorts): readonly Endpoint[] {
  const { platform, registry, whatsapp, directory, clock, telemetry } = ports;
  const { windows, templates } = whatsapp;
  const sending = { platform, windows, templates, clock };
  return [
    sendWhatsapp(sending, ports.passDesk),
    sendWhatsappBatch(sending),
    ...aliasEndpoints(registry.aliases),
    ...templateEndpoints({ desk: templates, store: registry.chatTemplates, directory }),
    credentialEndpoint(registry),
    incomingMessageEndpoint(whatsapp.messages),
    ...webhookEndpoints({ ...whatsapp, telemetry }),
  ];
}

/** Creates the channel's part of the registry. */
export function whatsappRegistry({ database, changes, credentials }: RegistryTools): WhatsappRegistry {
  return {
    aliases: new AliasRepository(database, changes),
    chatTemplates: new TemplateRepository(database, changes),
    async putWhatsappCredentials(tenantId, given) {
      const secret = whatsappSecret(tenantId, given);
      return secret.kind === "done" ? credentials.put(secret.value, "whatsapp") : secret;
    },
    async ownNumbers() {
      const opened = await credentials.opened(WHATSAPP_KIND, "whatsapp");
      return new Map(Array.from(opened, ([id, text]) => [id, parseWhatsappCredentials(text).phoneNumberId]));
    },
  };
}

declare module "../../storage/registry.ts" {
  interface Registry extends WhatsappRegistry {}
}
