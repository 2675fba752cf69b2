import {
  type CarriedPass,
  listValueNames,
  type MadePass,
  type PassValues,
} from "../../domain/channels/carried-pass.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";

/* A chat message names its pass in values that consist of one placeholder: `{{.pass.save_link}}`. */

const PLACEHOLDER = /^\{\{ *\.pass\.([a-z_]+) *\}\}$/;

/** Returns the body unchanged, or the reason why the message cannot carry the pass. */
export function bodyWithPass(body: JsonObject, { type }: CarriedPass): JsonObject | string {
  const names: readonly string[] = listValueNames(type);
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

/** Whether the value consists of one placeholder of a pass. */
export function isPlaceholder(value: Json): boolean {
  return nameIn(value) !== null;
}

/** Returns the name in a placeholder of a pass; null for an ordinary value. */
function nameIn(value: Json): string | null {
  return typeof value === "string" ? (PLACEHOLDER.exec(value)?.[1] ?? null) : null;
}

/** Members of a request, and of a payload, whose texts can be placeholders. */
const FILLED = ["params", "buttons", "cards", "components", "text", "interactive", "message"];

/** Lists the texts that can be placeholders, each with its name. */
function valuesIn(body: JsonObject): readonly (readonly [where: string, value: Json])[] {
  return FILLED.flatMap((name) => textsIn(body[name] ?? null, name));
}

function textsIn(value: Json, where: string): readonly (readonly [where: string, value: Json])[] {
  if (isJsonArray(value)) return value.flatMap((one, at) => textsIn(one, `${where}[${at}]`));
  if (!isJsonObject(value)) return typeof value === "string" ? [[where, value]] : [];
  return Object.entries(value).flatMap(([name, one]) => textsIn(one, `${where}.${name}`));
}

/** Fills the values of its pass into a message's payload (`WhatsappPayload`). */
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
