import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { badValue, type GraphRefusal, invalid, missing } from "./graph-refusal.ts";

const NAME_CHARS_MAX = 512;
const BODY_CHARS_MAX = 1_024;
/** A template's name tells the sandbox how many values its body takes. */
const TAKES = /_takes_(\d{1,3})$/;

/** Returns the template's name if the template is well-formed. */
export function templateName(template: Json | undefined): string | GraphRefusal {
  if (!isJsonObject(template)) return missing("template is required");
  const { name, language, components } = template;
  if (typeof name !== "string" || name === "") return missing("template.name is required");
  if (name.length > NAME_CHARS_MAX) return badValue("template.name is too long");
  if (!isJsonObject(language) || typeof language["code"] !== "string" || language["code"] === "") {
    return missing("template.language.code is required");
  }
  if (components !== undefined && !Array.isArray(components)) {
    return invalid("Param template['components'] must be an array.");
  }
  const all = components ?? [];
  for (const [index, component] of all.entries()) {
    const refusal = componentRefusal(component, `template['components'][${index}]`);
    if (refusal !== null) return refusal;
  }
  return countRefusal(name, all) ?? name;
}

/** Refuses the wrong number of values, and two values for one position. */
function countRefusal(name: string, components: readonly Json[]): GraphRefusal | null {
  const places = components.map((one) =>
    isJsonObject(one) ? `${String(one["type"])} ${String(one["index"] ?? "")}` : "",
  );
  if (new Set(places).size < places.length) return invalid("Param template['components'] names a component twice.");
  const body = components.find((one) => isJsonObject(one) && one["type"] === "body");
  const parameters = isJsonObject(body) && Array.isArray(body["parameters"]) ? body["parameters"] : [];
  const named = parameters.filter((one) => isJsonObject(one) && one["parameter_name"] !== undefined);
  if (named.length > 0 && named.length < parameters.length) return invalid("Parameter name is missing or empty");
  const expected = TAKES.exec(name)?.[1];
  return expected === undefined || Number(expected) === parameters.length
    ? null
    : wrongNumber("body", parameters.length, Number(expected));
}

function wrongNumber(component: string, given: number, expected: number | null): GraphRefusal {
  const details =
    `${component}: number of localizable_params (${given}) does not match the expected number of params` +
    (expected === null ? "" : ` (${expected})`);
  return { status: 400, code: 132000, message: "Number of parameters does not match", details };
}

function componentRefusal(component: unknown, path: string): GraphRefusal | null {
  if (!isJsonObject(component)) return invalid(`Param ${path} must be a JSON object.`);
  const { parameters } = component;
  const type = String(component["type"]).toLowerCase();
  if (type === "carousel") return carouselRefusal(component["cards"], `${path}['cards']`);
  if (!KINDS.includes(type)) {
    return invalid(
      `Param ${path}['type'] must be one of {HEADER, BODY, BUTTON, CAROUSEL, LIMITED_TIME_OFFER, ORDER_STATUS}.`,
    );
  }
  const isOfCatalog = type === "button" && String(component["sub_type"]).toLowerCase() === "catalog";
  if (parameters === undefined && isOfCatalog) return null;
  if (!isJsonArray(parameters)) return invalid(`Param ${path}['parameters'] must be an array.`);
  if (parameters.length === 0) return wrongNumber(type, 0, null);
  if (type !== "body" && parameters.length > 1) return wrongNumber(type, parameters.length, 1);
  if (type === "button") return buttonRefusal(component, parameters[0], path);
  if (type === "limited_time_offer") return offerRefusal(parameters[0], `${path}['parameters'][0]`);
  if (type === "order_status") return null;
  let chars = 0;
  for (const [index, parameter] of parameters.entries()) {
    const refusal = parameterRefusal(parameter, `${path}['parameters'][${index}]`, type);
    if (refusal !== null) return refusal;
    const text: unknown = isJsonObject(parameter) ? parameter["text"] : null;
    chars += typeof text === "string" ? text.length : 0;
  }
  const details = `${type}: translated text too long`;
  return chars > BODY_CHARS_MAX ? { status: 400, code: 132005, message: "Translated text too long", details } : null;
}

const KINDS = ["header", "body", "button", "limited_time_offer", "order_status"];
const CARDS_MAX = 10;

function carouselRefusal(cards: Json | undefined, path: string): GraphRefusal | null {
  if (!isJsonArray(cards) || cards.length === 0 || cards.length > CARDS_MAX) {
    return invalid(`Param ${path} must be an array of 1 to ${CARDS_MAX} cards.`);
  }
  const shapes = new Set<string>();
  for (const [at, card] of cards.entries()) {
    const here = `${path}[${at}]`;
    if (!isJsonObject(card) || card["card_index"] !== at) return invalid(`Param ${here}['card_index'] must be ${at}.`);
    const { components } = card;
    if (!isJsonArray(components)) return invalid(`Param ${here}['components'] must be an array.`);
    for (const [index, component] of components.entries()) {
      const refusal = componentRefusal(component, `${here}['components'][${index}]`);
      if (refusal !== null) return refusal;
    }
    const header = components.find((one) => isJsonObject(one) && one["type"] === "header");
    if (header === undefined) return missing(`carousel: Card ${at} requires a header`);
    shapes.add(JSON.stringify(components.map(toShape)));
  }
  return shapes.size === 1 ? null : invalid(`Param ${path}: all cards must have the same components.`);
}

function toShape(component: Json): Json {
  if (!isJsonObject(component)) return null;
  const { type = null, sub_type = null, index = null, parameters } = component;
  const first = isJsonArray(parameters) && isJsonObject(parameters[0]) ? (parameters[0]["type"] ?? null) : null;
  return [type, sub_type, index, first];
}

function offerRefusal(parameter: Json | undefined, path: string): GraphRefusal | null {
  const offer = isJsonObject(parameter) ? parameter["limited_time_offer"] : undefined;
  const endMs = isJsonObject(offer) ? offer["expiration_time_ms"] : undefined;
  return Number.isSafeInteger(endMs) ? null : missing(`${path} requires expiration_time_ms`);
}

/** The type of the one parameter that a button takes, by the button's type in lower case. */
const BUTTON_PARAMETERS: Readonly<Record<string, string>> = {
  quick_reply: "payload",
  url: "text",
  copy_code: "coupon_code",
  flow: "action",
  catalog: "action",
  mpm: "action",
  order_details: "action",
  voice_call: "ttl_minutes",
};
const SECTIONS_MAX = 10;
const PRODUCTS_MAX = 30;

function buttonRefusal(button: JsonObject, parameter: Json | undefined, path: string): GraphRefusal | null {
  const index = String(button["index"] ?? "");
  if (!/^\d$/.test(index)) return invalid(`Param ${path}['index'] must be from 0 to 9.`);
  const subType = String(button["sub_type"]).toLowerCase();
  const expected = BUTTON_PARAMETERS[subType];
  if (expected === undefined) {
    const known = Object.keys(BUTTON_PARAMETERS).join(", ").toUpperCase();
    return invalid(`Param ${path}['sub_type'] must be one of {${known}}.`);
  }
  const value = isJsonObject(parameter) && parameter["type"] === expected ? parameter[expected] : undefined;
  const absent = missing(`buttons: Button at index ${index} requires a parameter of type ${expected}`);
  if (expected === "ttl_minutes") return Number.isInteger(value) ? null : absent;
  if (expected !== "action") return typeof value === "string" && value !== "" ? null : absent;
  if (!isJsonObject(value)) return absent;
  return subType === "mpm" ? productsRefusal(value, index) : null;
}

function productsRefusal(action: JsonObject, index: string): GraphRefusal | null {
  const sections = isJsonArray(action["sections"]) ? action["sections"] : [];
  const items = sections.flatMap((section) =>
    isJsonObject(section) && isJsonArray(section["product_items"]) ? section["product_items"] : [],
  );
  if (sections.length === 0 || sections.length > SECTIONS_MAX || items.length === 0 || items.length > PRODUCTS_MAX) {
    return missing(`buttons: Button at index ${index} requires 1 to ${SECTIONS_MAX} sections of products`);
  }
  const isNamed = items.every((item) => isJsonObject(item) && typeof item["product_retailer_id"] === "string");
  return isNamed ? null : missing(`buttons: Button at index ${index} has a product without product_retailer_id`);
}

function parameterRefusal(parameter: unknown, path: string, component: string): GraphRefusal | null {
  if (!isJsonObject(parameter)) return invalid(`Param ${path} must be a JSON object.`);
  const { type, text } = parameter;
  if (type === "text") {
    if (typeof text !== "string") return invalid(`Param ${path}['text'] must be a string.`);
    if (text === "") return missing(`Parameter of type text is missing text value`);
    const isSpaced = /[\n\r\t]| {5}/.test(text);
    const details = "Param text cannot have new-line/tab characters or more than 4 consecutive spaces";
    return isSpaced ? { status: 400, code: 132018, message: "Invalid parameter", details } : null;
  }
  if (type === "currency" || type === "date_time") return localizedRefusal(parameter, path, component);
  if (type === "product" && component === "header") return productRefusal(parameter["product"], `${path}['product']`);
  if (type !== "image" && type !== "video" && type !== "document" && type !== "location")
    return invalid(`Param ${path}['type'] is not supported.`);
  if (component !== "header") {
    const details = `${component}: Format mismatch, expected TEXT, received ${type.toUpperCase()}`;
    return {
      status: 400,
      code: 132012,
      message: "Parameter format does not match format in the created template",
      details,
    };
  }
  return (type === "location" ? placeRefusal : mediaRefusal)(parameter[type], `${path}['${type}']`);
}

function localizedRefusal(parameter: JsonObject, path: string, component: string): GraphRefusal | null {
  const type = String(parameter["type"]);
  if (component === "header") return invalid(`Param ${path}['type'] is not supported.`);
  const value = parameter[type];
  if (!isJsonObject(value)) return missing(`Parameter of type ${type} is missing ${type} value`);
  if (typeof value["fallback_value"] !== "string") return missing(`${path}['${type}'] requires fallback_value`);
  const isFine =
    type === "date_time" || (/^[A-Z]{3}$/.test(String(value["code"])) && Number.isInteger(value["amount_1000"]));
  return isFine ? null : missing(`${path}['${type}'] requires code and amount_1000`);
}

function productRefusal(product: Json | undefined, path: string): GraphRefusal | null {
  const isNamed = isJsonObject(product) && typeof product["product_retailer_id"] === "string";
  return isNamed ? null : missing(`${path} requires product_retailer_id`);
}

export function placeRefusal(place: Json | undefined, path: string): GraphRefusal | null {
  if (!isJsonObject(place)) return invalid(`Param ${path} must be a JSON object.`);
  const isPlace = [place["latitude"], place["longitude"]].every((one) => /^-?\d+(\.\d+)?$/.test(String(one ?? "")));
  return isPlace ? null : missing(`${path} requires latitude and longitude`);
}

export function mediaRefusal(media: Json | undefined, path: string): GraphRefusal | null {
  if (!isJsonObject(media)) return invalid(`Param ${path} must be a JSON object.`);
  const { link, id }: JsonObject = media;
  if ((link === undefined) === (id === undefined))
    return invalid(`Param ${path} must have exactly one of link and id.`);
  const given = link ?? id;
  if (typeof given !== "string" || given === "") return invalid(`Param ${path} must be a string.`);
  return link !== undefined && !/^https?:\/\//.test(given) ? badValue(`${path}['link'] is not a valid URI.`) : null;
}

/** Templates with a button that copies a code need a number. */
export function isOfAuthentication(template: Json | undefined): boolean {
  const components = isJsonObject(template) && isJsonArray(template["components"]) ? template["components"] : [];
  return components.some((one) => isJsonObject(one) && String(one["sub_type"]).toLowerCase() === "copy_code");
}
