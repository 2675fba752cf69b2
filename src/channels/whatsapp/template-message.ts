import { isJsonObject, type JsonObject, parseJsonObject } from "../../domain/json.ts";
import { HEADER_MEDIA_TYPES, type HeaderMedia, type WhatsappPayload } from "../../domain/whatsapp.ts";

/** The payload as the request handler wrote it, or null if it has another form. */
export function parsePayload(text: string): WhatsappPayload | null {
  const parsed = parseJsonObject(text);
  if (parsed === null) return null;
  const { to, template, language, params } = parsed;
  const header = parsed["header"] === undefined ? undefined : headerOf(parsed["header"]);
  if (typeof to !== "string" || typeof template !== "string" || typeof language !== "string") return null;
  if (!isListOfText(params) || header === null) return null;
  return { to, template, language, params, ...(header === undefined ? {} : { header }) };
}

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

function headerOf(value: unknown): HeaderMedia | null {
  if (!isJsonObject(value)) return null;
  const { link, id, filename } = value;
  const type = HEADER_MEDIA_TYPES.find((one) => one === value["type"]);
  if (type === undefined) return null;
  return {
    type,
    ...(typeof link === "string" ? { link } : {}),
    ...(typeof id === "string" ? { id } : {}),
    ...(typeof filename === "string" ? { filename } : {}),
  };
}

function isListOfText(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
