import type { JsonObject } from "../../../domain/texts/json.ts";
import { Template } from "./template.ts";

const QUOTED_CHARS_MAX = 40;

/**
 * Returns a sentence with the position of the first `{{` that begins no placeholder; null if there is none. Only
 * checked when a template is stored: in a message, and in templates that are stored already, such braces stay as they
 * are.
 */
export function placeholderFault(field: string, text: string): string | null {
  const at = Template.firstBroken(text);
  if (at === null) return null;
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - before.lastIndexOf("\n");
  const quoted = JSON.stringify(text.slice(at, at + QUOTED_CHARS_MAX));
  const literal =
    field === "html"
      ? "write braces that are meant literally as &#123;&#123;"
      : "braces that are meant literally come from a variable";
  return `${field} has a broken placeholder at line ${line}, column ${column}: ${quoted}; placeholders look like {{.name}} or {{.user.name}}, and ${literal}`;
}

/** Placeholders in the syntax of other services: `{{name}}`, `{{ user.name }}`, `{{{name}}}`. */
const UNDOTTED = /\{\{[ \t]{0,9}([A-Za-z_][\w-]{0,99})(?:[.[][\w.[\]-]{0,100})?[ \t]{0,9}\}\}/g;

/**
 * Returns a sentence about a placeholder without its dot, if a message's data has the variable; null if there is none.
 * It would be sent literally. Other braces in a message are ordinary text.
 */
export function undottedPlaceholder(field: string, text: string, data: JsonObject): string | null {
  if (!text.includes("{{")) return null;
  for (const [whole, name = ""] of text.matchAll(UNDOTTED)) {
    if (!Object.hasOwn(data, name)) continue;
    const meant = whole.replace(/\{\{[ \t]*/, "{{.");
    return `${field} has ${JSON.stringify(whole)}, which is no placeholder: write ${meant} for the value that data has`;
  }
  return null;
}
