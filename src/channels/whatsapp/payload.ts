import { isJsonObject, type JsonObject, parseJsonObject } from "../../domain/json.ts";
import { buttonsOf, type MessageButton } from "./buttons.ts";
import { headerOf, type MessageHeader } from "./header.ts";
import { type MessageParams, queuedParams } from "./params.ts";

/** What is queued of a message from a template. Aliases are translated, values are text. */
export interface TemplatePayload {
  /** Digits, including the country code, or the provider's id of the recipient. */
  readonly to: string;
  /** The provider's name of the template. */
  readonly template: string;
  readonly language: string;
  readonly params: MessageParams;
  readonly header?: MessageHeader;
  readonly buttons?: readonly MessageButton[];
}

/** What is queued of a message in free text, which answers the recipient. */
export interface TextPayload {
  readonly to: string;
  readonly text: { readonly body: string; readonly preview_url: boolean };
}

export type WhatsappPayload = TemplatePayload | TextPayload;

/** The payload in the form of its job. */
export function encodePayload(payload: WhatsappPayload): string {
  if ("text" in payload || payload.buttons === undefined) return JSON.stringify(payload);
  // A release that knows no buttons must not send the message without them. It cannot read a name that is no text, and
  // fails the job; it cannot read free text, values by name, and headers of text or of a place either.
  return JSON.stringify({ ...payload, template: { name: payload.template } });
}

/** Parses what `encodePayload` wrote; null: it did not write this. */
export function parsePayload(text: string): WhatsappPayload | null {
  const parsed = parseJsonObject(text);
  if (parsed === null || typeof parsed["to"] !== "string") return null;
  return parsed["text"] === undefined ? templateIn(parsed, parsed["to"]) : textIn(parsed["text"], parsed["to"]);
}

function templateIn(parsed: JsonObject, to: string): TemplatePayload | null {
  const { template: named, language } = parsed;
  const template = isJsonObject(named) ? named["name"] : named;
  if (typeof template !== "string" || typeof language !== "string") return null;
  const params = queuedParams(parsed["params"]);
  const header = parsed["header"] === undefined ? undefined : headerOf(parsed["header"]);
  const buttons = parsed["buttons"] === undefined ? undefined : buttonsOf(parsed["buttons"]);
  if (params === null || header === null || buttons === null) return null;
  return {
    to,
    template,
    language,
    params,
    ...(header === undefined ? null : { header }),
    ...(buttons === undefined ? null : { buttons }),
  };
}

function textIn(text: unknown, to: string): TextPayload | null {
  if (!isJsonObject(text)) return null;
  const { body, preview_url } = text;
  return typeof body === "string" && typeof preview_url === "boolean" ? { to, text: { body, preview_url } } : null;
}
