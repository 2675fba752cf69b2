import { type CarriedPass, type MadePass, type PassValues, valueNamesOf } from "../../domain/carried-pass.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../domain/json.ts";

/* A chat message names its pass in values that are a placeholder and nothing else: `{{.pass.save_link}}`. */

const PLACEHOLDER = /^\{\{ *\.pass\.([a-z_]+) *\}\}$/;

/** The body as it is; a text says why the message cannot have the pass. */
export function bodyWithPass(body: JsonObject, { type }: CarriedPass): JsonObject | string {
  const names: readonly string[] = valueNamesOf(type);
  let hasLink = false;
  for (const [where, value] of valuesIn(body)) {
    const name = nameIn(value);
    if (name === null) continue;
    if (!names.includes(name)) {
      const known = names.map(placeholder).join(", ");
      return `${where} is ${placeholder(name.slice(0, 100))}, and a pass of type ${type} has ${known}`;
    }
    hasLink ||= name !== "pass_id";
  }
  if (hasLink) return body;
  const link = placeholder(type === "google" ? "save_link" : "download_url");
  return `pass would not reach the recipient: make a value of params or buttons ${link}, or text`;
}

function placeholder(name: string): string {
  return `{{.pass.${name}}}`;
}

/** The name in a value that is a placeholder of a pass; null: it is an ordinary value. */
function nameIn(value: Json): string | null {
  return typeof value === "string" ? (PLACEHOLDER.exec(value)?.[1] ?? null) : null;
}

/** Values that can be placeholders, and what each is called. */
function valuesIn({ params, buttons, text }: JsonObject): readonly (readonly [where: string, value: Json])[] {
  const listed = Array.isArray(params) ? params.map((value, at) => [`params[${at}]`, value] as const) : [];
  const named = isJsonObject(params)
    ? Object.entries(params).map(([name, value]) => [`params.${name}`, value] as const)
    : [];
  const pressed = (Array.isArray(buttons) ? buttons : []).map(
    (button, at) => [`buttons[${at}].value`, isJsonObject(button) ? (button["value"] ?? null) : null] as const,
  );
  const body = isJsonObject(text) ? (text["body"] ?? null) : (text ?? null);
  return [...listed, ...named, ...pressed, ["text", body]];
}

/** The payload of a message (`WhatsappPayload`) with the values of its pass. */
export function chatWithPass(message: JsonObject, { values }: MadePass): JsonObject {
  const fill = (value: Json): Json => {
    const name = nameIn(value);
    return name !== null && Object.hasOwn(values, name) ? (values[name as keyof PassValues] ?? value) : value;
  };
  const { params, buttons, text } = message;
  return {
    ...message,
    ...(Array.isArray(params) && { params: params.map(fill) }),
    ...(isJsonObject(params) && { params: withEach(params, fill) }),
    ...(isJsonArray(buttons) && {
      buttons: buttons.map((button) =>
        isJsonObject(button) ? { ...button, value: fill(button["value"] ?? null) } : button,
      ),
    }),
    ...(isJsonObject(text) && { text: { ...text, body: fill(text["body"] ?? null) } }),
  };
}

function withEach(object: JsonObject, change: (value: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
