import { isJsonObject, type JsonObject, parseJsonObject } from "../../domain/json.ts";

/** What is queued of an e-mail. */
export interface EmailPayload {
  readonly to: string;
  readonly toName?: string;
  /** Overrides the template's subject. */
  readonly subject?: string;
  readonly html?: string;
  /** Slug of a registered template; exactly one of `template` and `html` is present. */
  readonly template?: string;
  readonly data?: JsonObject;
}

/** The payload in the form of its job. Undefined members are left out. */
export function encodePayload(payload: { readonly [K in keyof EmailPayload]: EmailPayload[K] | undefined }): string {
  return JSON.stringify(payload);
}

/** Parses what `encodePayload` wrote; null: it did not write this. */
export function parsePayload(text: string): EmailPayload | null {
  const parsed = parseJsonObject(text);
  if (parsed === null || typeof parsed["to"] !== "string") return null;
  const { to, toName, subject, html, template, data } = parsed;
  return {
    to,
    ...(typeof toName === "string" ? { toName } : {}),
    ...(typeof subject === "string" ? { subject } : {}),
    ...(typeof html === "string" ? { html } : {}),
    ...(typeof template === "string" ? { template } : {}),
    ...(isJsonObject(data) ? { data } : {}),
  };
}
