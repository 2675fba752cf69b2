import type { JsonObject } from "../../domain/json.ts";
import { WHATSAPP_USER_ID } from "../../domain/whatsapp.ts";
import { buttonComponent } from "./buttons.ts";
import { headerParameter } from "./header.ts";
import { bodyParameters } from "./params.ts";
import type { TemplatePayload, WhatsappPayload } from "./payload.ts";

/**
 * The request body of a message. Every callback returns `callbackData`, which identifies the job even if the reply to
 * this request never arrived.
 */
export function graphMessage(payload: WhatsappPayload, callbackData: string): JsonObject {
  const content =
    "text" in payload ? { type: "text", text: payload.text } : { type: "template", template: templateOf(payload) };
  return {
    messaging_product: "whatsapp",
    recipient_type: "individual",
    ...(WHATSAPP_USER_ID.test(payload.to) ? { recipient: payload.to } : { to: payload.to }),
    ...content,
    biz_opaque_callback_data: callbackData,
  };
}

function templateOf({ template, language, params, header, buttons = [] }: TemplatePayload): JsonObject {
  const values = bodyParameters(params);
  // The provider refuses a body component without parameters for a template without variables (132000).
  const components: JsonObject[] = [
    ...(header === undefined ? [] : [{ type: "header", parameters: [headerParameter(header)] }]),
    ...(values.length === 0 ? [] : [{ type: "body", parameters: values }]),
    ...buttons.map(buttonComponent),
  ];
  return {
    name: template,
    language: { code: language },
    ...(components.length === 0 ? {} : { components }),
  };
}
