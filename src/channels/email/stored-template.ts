import type { EmailTemplate } from "../../domain/email.ts";
import type { JsonObject } from "../../domain/json.ts";

/** An e-mail template in the form of its database column. */
export function emailTemplateBody({ subject, html, text }: EmailTemplate): JsonObject {
  return { subject, html, text };
}

/** Parses the template that `emailTemplateBody` wrote. */
export function parseEmailTemplate(body: JsonObject): EmailTemplate {
  const [subject, html, text] = [body["subject"], body["html"], body["text"]];
  if (typeof subject !== "string" || typeof html !== "string")
    throw new Error("a stored e-mail template is incomplete");
  return { subject, html, text: typeof text === "string" ? text : null };
}
