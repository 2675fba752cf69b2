import { isJsonObject, parseJsonObject } from "../../domain/json.ts";
import { HEADER_MEDIA_TYPES, type HeaderMedia } from "../../domain/whatsapp.ts";

/** What is queued of a chat message. Aliases are translated, values are text. */
export interface WhatsappPayload {
  /** Digits, including the country code. */
  readonly to: string;
  /** The provider's name of the template. */
  readonly template: string;
  readonly language: string;
  /** Values of `{{1}}`, `{{2}}`, … of the template's body, in order. */
  readonly params: readonly string[];
  readonly header?: HeaderMedia;
}

/** The payload in the form of its job. */
export function encodePayload(payload: WhatsappPayload): string {
  return JSON.stringify(payload);
}

/** Parses what `encodePayload` wrote; null: it did not write this. */
export function parsePayload(text: string): WhatsappPayload | null {
  const parsed = parseJsonObject(text);
  if (parsed === null) return null;
  const { to, template, language, params } = parsed;
  const header = parsed["header"] === undefined ? undefined : headerOf(parsed["header"]);
  if (typeof to !== "string" || typeof template !== "string" || typeof language !== "string") return null;
  if (!isListOfText(params) || header === null) return null;
  return { to, template, language, params, ...(header === undefined ? {} : { header }) };
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
