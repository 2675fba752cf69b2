import { isJsonObject } from "../../../domain/texts/json.ts";
import type { CallbackPart } from "../callbacks/webhook.ts";
import type { TemplateNews } from "./template-repository.ts";

/** Events whose name differs from the state that follows; null if the state does not change. */
const STATES: Readonly<Record<string, string | null>> = {
  REINSTATED: "APPROVED",
  UNARCHIVED: "APPROVED",
  FLAGGED: null,
};

/** Reads a template's new state from a part of a call (webhook `message_template_status_update`); null if it has none. */
export function templateNews({ field, event, content }: CallbackPart): TemplateNews | null {
  if (field !== "message_template_status_update" || event === null || !isJsonObject(content)) return null;
  const said = isJsonObject(content["value"]) ? content["value"] : content;
  const { message_template_name: name, message_template_language: language } = said;
  const word = event.toUpperCase();
  const status = Object.hasOwn(STATES, word) ? (STATES[word] ?? null) : word;
  return typeof name === "string" && typeof language === "string" && status !== null
    ? { name, language, status }
    : null;
}
