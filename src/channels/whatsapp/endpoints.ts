import type { PlatformCredentials } from "../../domain/platform.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { RegistryTools } from "../../storage/registry.ts";
import { type Aliases, aliasEndpoints } from "./alias-endpoints.ts";
import { AliasRepository } from "./alias-repository.ts";
import { type CredentialStore, credentialEndpoint } from "./credential-endpoint.ts";
import { whatsappSecret } from "./credentials.ts";
import { incomingMessageEndpoint } from "./incoming-message-endpoint.ts";
import type { WhatsappPorts } from "./ports.ts";
import { sendWhatsapp, sendWhatsappBatch } from "./send-endpoint.ts";
import { webhookEndpoints } from "./webhook-endpoints.ts";

interface WhatsappRegistry extends CredentialStore {
  readonly aliases: Aliases;
}

interface EndpointPorts {
  readonly platform: PlatformCredentials;
  readonly registry: WhatsappRegistry;
  readonly whatsapp: WhatsappPorts;
  readonly telemetry: Telemetry;
}

/** All endpoints of the chat channel. */
export function whatsappEndpoints({ platform, registry, whatsapp, telemetry }: EndpointPorts): readonly Endpoint[] {
  return [
    sendWhatsapp(platform),
    sendWhatsappBatch(platform),
    ...aliasEndpoints(registry.aliases),
    credentialEndpoint(registry),
    incomingMessageEndpoint(whatsapp.messages),
    ...webhookEndpoints({ ...whatsapp, telemetry }),
  ];
}

/** The channel's part of the registry. */
export function whatsappRegistry({ database, changes, credentials }: RegistryTools): WhatsappRegistry {
  return {
    aliases: new AliasRepository(database, changes),
    async putWhatsappCredentials(tenantId, given) {
      const secret = whatsappSecret(tenantId, given);
      return secret.kind === "done" ? credentials.put(secret.value, "whatsapp") : secret;
    },
  };
}

declare module "../../storage/registry.ts" {
  interface Registry extends WhatsappRegistry {}
}
