import { isJsonArray, isJsonObject, type JsonObject, parseJsonObject, parseWritten } from "../../domain/texts/json.ts";
import { type MessageButton, readButtons } from "./templates/buttons.ts";
import { type MessageHeader, readHeader } from "./templates/header.ts";
import { type MessageParams, queuedParams } from "./templates/params.ts";

/** The queued form of a message from a template. Aliases are translated, values are text. */
export interface TemplatePayload {
  /** Digits, including the country code, or the provider's id of the recipient. */
  readonly to: string;
  /** The provider's name of the template. */
  readonly template: string;
  readonly language: string;
  readonly params: MessageParams;
  readonly header?: MessageHeader;
  readonly buttons?: readonly MessageButton[];
  /** Further components, such as a carousel, in the provider's form. */
  readonly components?: readonly JsonObject[];
}

/** The queued form of a message in free text, which answers the recipient. */
export interface TextPayload {
  readonly to: string;
  readonly text: { readonly body: string; readonly preview_url: boolean };
}

/** The queued form of any other message without a template. */
export interface ReplyPayload {
  readonly to: string;
  /** In the provider's form: its `type`, the member of that name, and `context`. */
  readonly message: JsonObject;
}

export type WhatsappPayload = TemplatePayload | TextPayload | ReplyPayload;

/** Serialises the payload for its job. */
export function encodePayload(payload: WhatsappPayload): string {
  // A release must not send a message without what it does not know: buttons, and further components. It cannot read a name
  // that is elsewhere, and fails the job; nor can it read kinds of values, headers, buttons and messages that it does not know.
  if (!("template" in payload)) return JSON.stringify(payload);
  const { template, buttons, components } = payload;
  if (components !== undefined) return JSON.stringify({ ...payload, template: { composed: template } });
  return JSON.stringify(buttons === undefined ? payload : { ...payload, template: { name: template } });
}

/** Parses the output of `encodePayload`; null for any other text. */
export function parsePayload(queued: string): WhatsappPayload | null {
  const parsed = parseJsonObject(queued, parseWritten);
  if (parsed === null || typeof parsed["to"] !== "string") return null;
  const { to, text, message } = parsed;
  if (message !== undefined) return isJsonObject(message) ? { to, message } : null;
  return text === undefined ? templateIn(parsed, to) : textIn(text, to);
}

function templateIn(parsed: JsonObject, to: string): TemplatePayload | null {
  const { template: named, language } = parsed;
  const template = isJsonObject(named) ? (named["composed"] ?? named["name"]) : named;
  if (typeof template !== "string" || typeof language !== "string") return null;
  const params = queuedParams(parsed["params"]);
  const header = parsed["header"] === undefined ? undefined : readHeader(parsed["header"]);
  const buttons = parsed["buttons"] === undefined ? undefined : readButtons(parsed["buttons"]);
  const components = parsed["components"];
  if (params === null || header === null || buttons === null) return null;
  return {
    to,
    template,
    language,
    params,
    ...(header === undefined ? null : { header }),
    ...(buttons === undefined ? null : { buttons }),
    ...(isJsonArray(components) ? { components: components.filter(isJsonObject) } : null),
  };
}

function textIn(text: unknown, to: string): TextPayload | null {
  if (!isJsonObject(text)) return null;
  const { body, preview_url } = text;
  return typeof body === "string" && typeof preview_url === "boolean" ? { to, text: { body, preview_url } } : null;
}
