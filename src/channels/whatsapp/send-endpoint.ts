import type { Endpoint } from "../../http/endpoint.ts";
import { tenantFailure } from "../../http/failures.ts";
import { batchEndpoint } from "../../http/sending/batch-endpoint.ts";
import { acceptCarrying, acceptWithoutPass, carrying, type PassDesk } from "../../http/sending/carried-pass.ts";
import { sendEndpoint } from "../../http/sending/send-endpoint.ts";
import { bodyWithPass } from "./carried-pass.ts";
import { acceptWhatsapp, ChatSend, type ChatSendPorts } from "./request.ts";

const EXAMPLES = {
  template: {
    summary: "From a template",
    value: {
      phone_number: "5491122334455",
      template_id: "order_shipped",
      language_code: "es",
      params: ["Ada", 1042],
    },
  },
  filled: {
    summary: "A template with a header, values by name and buttons",
    value: {
      phone_number: "5491122334455",
      template_id: "order_ready",
      language_code: "en",
      params: { first_name: "Ada", order: 1042 },
      header: { type: "document", link: "https://api.example.com/receipt.pdf", filename: "receipt.pdf" },
      buttons: [
        { index: 0, sub_type: "url", value: "orders/1042" },
        { index: 1, sub_type: "quick_reply", value: "cancel-1042" },
      ],
    },
  },
  pass: {
    summary: "With a pass for Apple's wallet",
    value: {
      phone_number: "5491122334455",
      template_id: "member_card",
      language_code: "en",
      params: ["Ada", "{{.pass.download_url}}"],
      pass: {
        pass_type: "apple",
        pass_data: {
          serial_number: "card-3042",
          organization_name: "Acme",
          description: "Member card",
          style: "storeCard",
          primary_fields: [{ key: "points", label: "Points", value: "120" }],
        },
      },
    },
  },
  carousel: {
    summary: "A carousel",
    value: {
      phone_number: "5491122334455",
      template_id: "winter_sale",
      language_code: "en",
      params: ["Ada", { type: "currency", fallback_value: "€25.00", code: "EUR", amount_1000: 25_000 }],
      cards: ["coat", "boots"].map((value) => ({
        header: { type: "image", link: `https://api.example.com/${value}.png` },
        buttons: [{ index: 0, sub_type: "url", value }],
      })),
    },
  },
  interactive: {
    summary: "An answer with buttons",
    value: {
      phone_number: "5491122334455",
      interactive: {
        type: "button",
        body: "Shall we come tomorrow?",
        buttons: [
          { id: "yes", title: "Yes" },
          { id: "no", title: "Another day" },
        ],
      },
    },
  },
  media: {
    summary: "A picture that answers a message",
    value: {
      phone_number: "5491122334455",
      media: { type: "image", link: "https://api.example.com/door.jpeg", caption: "At your door" },
      reply_to: "wamid.HBgNNTQ5MTEyMjMzNDQ1NRUCABIYFDNB",
    },
  },
  text: {
    summary: "An answer in free text",
    value: { phone_number: "5491122334455", text: { body: "Your parcel is at the door.", preview_url: false } },
  },
};

/** `POST /v1/send/whatsapp`. */
export function sendWhatsapp(ports: ChatSendPorts, desk: PassDesk): Endpoint {
  return sendEndpoint({
    path: "/v1/send/whatsapp",
    name: "send_whatsapp",
    operation: "sendWhatsapp",
    summary: "Queue a chat message",
    description:
      "A template that the provider has approved with its values, or an answer (text, media, a location, contacts, a reaction " +
      "or an interactive message) to somebody who wrote to the sending number within the last 24 hours. A message with a `pass` makes the pass first, for 1 token; a value that is " +
      "`{{.pass.save_link}}`, `{{.pass.save_token}}` (Google), `{{.pass.download_url}}`, `{{.pass.download_token}}` (Apple) or " +
      "`{{.pass.pass_id}}` alone is replaced by the pass's own value. 202 means: on disk. 500 where neither the tenant nor the platform has " +
      "credentials for the provider.",
    channel: "whatsapp",
    scope: "whatsapp",
    body: {
      schema: carrying(ChatSend, desk),
      examples: EXAMPLES,
    },
    fails: { 402: desk.noTokens, 422: WINDOW_CLOSED },
    accept: acceptCarrying(desk, {
      accept: (tenant, body) => acceptWhatsapp(tenant, body, ports),
      bodyWith: bodyWithPass,
    }),
  });
}

const WINDOW_CLOSED = tenantFailure(
  "ReplyWindowClosed",
  "A message without a template to somebody who did not write to the sending number within the last 24 hours, or the Idempotency-Key was used with " +
    "another body.",
  "text is only taken within 24 hours of the recipient's last message to the number that sends, and no message from the " +
    "last two days is known: send a template (template_id) instead",
);
/** `POST /v1/send/whatsapp/batch`. */
export function sendWhatsappBatch(ports: ChatSendPorts): Endpoint {
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
    accept: acceptWithoutPass((tenant, body) => acceptWhatsapp(tenant, body, ports), "POST /v1/send/whatsapp"),
  });
}
