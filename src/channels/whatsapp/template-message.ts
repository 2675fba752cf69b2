import type { JsonObject } from "../../domain/json.ts";
import type { HeaderMedia } from "../../domain/whatsapp.ts";
import type { WhatsappPayload } from "./payload.ts";

/**
 * The request body of a template message. Every callback returns `callbackData`, which identifies the job even if the
 * reply to this request never arrived.
 */
export function templateMessage(payload: WhatsappPayload, callbackData: string): JsonObject {
  const { to, template, language, params, header } = payload;
  // The provider refuses a body component without parameters for a template without variables (132000).
  const components: JsonObject[] = [
    ...(header === undefined ? [] : [{ type: "header", parameters: [mediaOf(header)] }]),
    ...(params.length === 0 ? [] : [{ type: "body", parameters: params.map((text) => ({ type: "text", text })) }]),
  ];
  return {
    messaging_product: "whatsapp",
    recipient_type: "individual",
    to,
    type: "template",
    template: {
      name: template,
      language: { code: language },
      ...(components.length === 0 ? {} : { components }),
    },
    biz_opaque_callback_data: callbackData,
  };
}

function mediaOf({ type, link, id, filename }: HeaderMedia): JsonObject {
  const media = {
    ...(link === undefined ? {} : { link }),
    ...(id === undefined ? {} : { id }),
    ...(filename === undefined || type !== "document" ? {} : { filename }),
  };
  return { type, [type]: media };
}
