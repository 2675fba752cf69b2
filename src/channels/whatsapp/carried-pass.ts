import { type CarriedPass, type MadePass, type PassValues, valueNamesOf } from "../../domain/channels/carried-pass.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";

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
  return `pass would not reach the recipient: make a value of params or buttons ${link}, or text, or the url of interactive`;
}

function placeholder(name: string): string {
  return `{{.pass.${name}}}`;
}

/** Whether the value is a placeholder of a pass and nothing else. */
export function isPlaceholder(value: Json): boolean {
  return nameIn(value) !== null;
}

/** The name in a value that is a placeholder of a pass; null: it is an ordinary value. */
function nameIn(value: Json): string | null {
  return typeof value === "string" ? (PLACEHOLDER.exec(value)?.[1] ?? null) : null;
}

/** Members of a request, and of a payload, whose texts can be placeholders. */
const FILLED = ["params", "buttons", "cards", "components", "text", "interactive", "message"];

/** Texts that can be placeholders, and what each is called. */
function valuesIn(body: JsonObject): readonly (readonly [where: string, value: Json])[] {
  return FILLED.flatMap((name) => textsIn(body[name] ?? null, name));
}

function textsIn(value: Json, where: string): readonly (readonly [where: string, value: Json])[] {
  if (isJsonArray(value)) return value.flatMap((one, at) => textsIn(one, `${where}[${at}]`));
  if (!isJsonObject(value)) return typeof value === "string" ? [[where, value]] : [];
  return Object.entries(value).flatMap(([name, one]) => textsIn(one, `${where}.${name}`));
}

/** The payload of a message (`WhatsappPayload`) with the values of its pass. */
export function chatWithPass(message: JsonObject, { values }: MadePass): JsonObject {
  return withEach(message, (member, name) => (FILLED.includes(name) ? filled(member, values) : member));
}

function filled(value: Json, values: PassValues): Json {
  if (isJsonArray(value)) return value.map((one) => filled(one, values));
  if (isJsonObject(value)) return withEach(value, (one) => filled(one, values));
  const name = nameIn(value);
  return name !== null && Object.hasOwn(values, name) ? (values[name as keyof PassValues] ?? value) : value;
}

function withEach(object: JsonObject, change: (value: Json, name: string) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value, name)]));
}
