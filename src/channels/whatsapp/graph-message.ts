import { WHATSAPP_USER_ID } from "../../domain/channels/whatsapp.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import type { TemplatePayload, WhatsappPayload } from "./payload.ts";
import { filledComponents } from "./templates/components.ts";

/**
 * Builds the request body of a message. Every callback returns `callbackData`, which identifies the job even if the
 * reply to this request never arrived.
 */
export function graphMessage(payload: WhatsappPayload, callbackData: string): JsonObject {
  return {
    messaging_product: "whatsapp",
    recipient_type: "individual",
    ...(WHATSAPP_USER_ID.test(payload.to) ? { recipient: payload.to } : { to: payload.to }),
    ...buildContent(payload),
    biz_opaque_callback_data: callbackData,
  };
}

function buildContent(payload: WhatsappPayload): JsonObject {
  if ("message" in payload) return payload.message;
  return "text" in payload
    ? { type: "text", text: payload.text }
    : { type: "template", template: buildTemplate(payload) };
}

function buildTemplate({ template, language, params, header, buttons = [], components = [] }: TemplatePayload) {
  const all = [...filledComponents({ header: header ?? null, params, buttons }), ...components];
  return {
    name: template,
    language: { code: language },
    ...(all.length === 0 ? {} : { components: all }),
  };
}
