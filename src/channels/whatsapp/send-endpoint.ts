import type { PlatformCredentials } from "../../domain/platform.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { batchEndpoint } from "../../http/sending/batch-endpoint.ts";
import { sendEndpoint } from "../../http/sending/send-endpoint.ts";
import { acceptWhatsapp, ChatSend } from "./request.ts";

/** `POST /v1/send/whatsapp`. */
export function sendWhatsapp(platform: PlatformCredentials): Endpoint {
  return sendEndpoint({
    path: "/v1/send/whatsapp",
    name: "send_whatsapp",
    operation: "sendWhatsapp",
    summary: "Queue a chat message",
    description:
      "A template that the provider has approved, and the values of its positions. 202 means: on disk. 500 where neither " +
      "the tenant nor the platform has credentials for the provider.",
    channel: "whatsapp",
    scope: "whatsapp",
    body: {
      schema: ChatSend,
      examples: {
        template: {
          summary: "From a template",
          value: {
            phone_number: "5491122334455",
            template_id: "order_shipped",
            language_code: "es",
            params: ["Ada", 1042],
          },
        },
      },
    },
    accept: (tenant, body) => acceptWhatsapp(tenant, body, platform),
  });
}

/** `POST /v1/send/whatsapp/batch`. */
export function sendWhatsappBatch(platform: PlatformCredentials): Endpoint {
  return batchEndpoint({
    path: "/v1/send/whatsapp/batch",
    name: "send_whatsapp_batch",
    operation: "sendWhatsappBatch",
    summary: "Queue up to 1,000 chat messages",
    channel: "whatsapp",
    scope: "whatsapp",
    message: ChatSend,
    example: {
      defaults: { template_id: "order_shipped", language_code: "es" },
      messages: [
        { phone_number: "5491122334455", params: ["Ada", 1042] },
        { phone_number: "5491122334466", params: ["Bob", 1043] },
      ],
    },
    accept: (tenant, body) => acceptWhatsapp(tenant, body, platform),
  });
}
