import type { EmailTemplate } from "../../../domain/channels/email.ts";
import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import { trackingChoice } from "../payload.ts";

/** Converts an e-mail template to the form of its column. */
export function emailTemplateBody({ subject, html, text, topic, tracking }: EmailTemplate): JsonObject {
  return { subject, html, text, ...(topic !== undefined && { topic }), ...(tracking !== undefined && { tracking }) };
}

/** Parses the output of `emailTemplateBody`. */
export function parseEmailTemplate(body: JsonObject): EmailTemplate {
  const { subject, html, text, topic, tracking } = body;
  if (typeof subject !== "string" || typeof html !== "string")
    throw new Error("a stored e-mail template is incomplete");
  return {
    subject,
    html,
    text: typeof text === "string" ? text : null,
    ...(typeof topic === "string" && { topic }),
    ...(isJsonObject(tracking) && { tracking: trackingChoice(tracking) }),
  };
}
