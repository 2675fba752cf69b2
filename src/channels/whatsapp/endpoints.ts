import type { PlatformCredentials } from "../../domain/platform.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { type Aliases, aliasEndpoints } from "./alias-endpoints.ts";
import { type CredentialStore, credentialEndpoint } from "./credential-endpoint.ts";
import { incomingMessageEndpoint } from "./incoming-message-endpoint.ts";
import type { WhatsappPorts } from "./ports.ts";
import { sendWhatsapp } from "./send-endpoint.ts";
import { webhookEndpoints } from "./webhook-endpoints.ts";

interface EndpointPorts {
  readonly platform: PlatformCredentials;
  readonly registry: Aliases & CredentialStore;
  readonly whatsapp: WhatsappPorts;
  readonly telemetry: Telemetry;
}

/** All endpoints of the chat channel. */
export function whatsappEndpoints({ platform, registry, whatsapp, telemetry }: EndpointPorts): readonly Endpoint[] {
  return [
    sendWhatsapp(platform),
    ...aliasEndpoints(registry),
    credentialEndpoint(registry),
    incomingMessageEndpoint(whatsapp.messages),
    ...webhookEndpoints({ ...whatsapp, telemetry }),
  ];
}
