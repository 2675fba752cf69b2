import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";

/** A message in the form that the Graph API accepts. */
export interface MessageRequest {
  /** Digits, or the id of a person. */
  readonly to: string;
  /** The template's name; null: free text. */
  readonly template: string | null;
  /** Returned with every callback. */
  readonly opaque: string | null;
}

/** An error as the Graph API returns it, with its HTTP status. */
export interface GraphRefusal {
  readonly status: number;
  readonly code: number;
  readonly subcode?: number;
  /** Without the code prefix. */
  readonly message: string;
  readonly details?: string;
  readonly type?: string;
}

/** The message that a request asks for, or its first error in the provider's words. */
export function readMessageRequest(body: string): MessageRequest | GraphRefusal {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return invalid("The request body is not valid JSON.");
  }
  if (!isJsonObject(parsed)) return invalid("The request body must be an object.");
  const {
    messaging_product,
    recipient_type,
    to: number,
    recipient,
    type,
    template,
    text,
    biz_opaque_callback_data: opaque,
  } = parsed;
  if (messaging_product !== "whatsapp") return invalid("The parameter messaging_product is required.");
  if (recipient_type !== undefined && recipient_type !== "individual") {
    return invalid('Param recipient_type must be one of {"INDIVIDUAL"}.');
  }
  // A number goes before an id, as with the provider.
  const to = number ?? recipient;
  if (typeof to !== "string" || to === "") return invalid("The parameter to is required.");
  if (number === undefined && !USER_ID.test(to)) return badValue("Recipient user id is not valid");
  if (number !== undefined && !/^\+?\d{7,15}$/.test(to)) return badValue("Recipient phone number is not valid");
  if (type !== "template" && type !== "text") return { status: 400, code: 131051, message: "Unsupported message type" };
  if (opaque !== undefined && (typeof opaque !== "string" || opaque.length > OPAQUE_CHARS_MAX)) {
    return badValue(`biz_opaque_callback_data must be a string of at most ${OPAQUE_CHARS_MAX} characters`);
  }
  const name = type === "text" ? textRefusal(text) : templateName(template);
  if (name !== null && typeof name !== "string") return name;
  if (number === undefined && isOfAuthentication(template)) return NO_USER_ID;
  return { to: to.replace("+", ""), template: name, opaque: opaque ?? null };
}

const USER_ID = /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/;
const OPAQUE_CHARS_MAX = 512;
const NAME_CHARS_MAX = 512;
const BODY_CHARS_MAX = 1_024;
const TEXT_CHARS_MAX = 4_096;
/** A template of this name takes so many values in its body: the sandbox knows no others. */
const TAKES = /_takes_(\d{1,3})$/;
/** The type of the one parameter that a button takes, by the button's type in lower case. */
const BUTTON_PARAMETERS: Readonly<Record<string, string>> = {
  quick_reply: "payload",
  url: "text",
  copy_code: "coupon_code",
  flow: "action",
};

function textRefusal(text: Json | undefined): GraphRefusal | null {
  if (!isJsonObject(text) || typeof text["body"] !== "string" || text["body"] === "") {
    return invalid("The parameter text['body'] is required.");
  }
  if (text["body"].length > TEXT_CHARS_MAX) {
    return invalid(`Param text['body'] must be at most ${TEXT_CHARS_MAX} characters long.`);
  }
  const preview = text["preview_url"];
  return preview === undefined || typeof preview === "boolean"
    ? null
    : invalid("Param text['preview_url'] must be a boolean.");
}

/** The name of the template if it is well-formed. */
function templateName(template: Json | undefined): string | GraphRefusal {
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

/** Refuses the wrong number of values, and two values for one place. */
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
  const { type, parameters } = component;
  if (type !== "header" && type !== "body" && type !== "button") {
    return invalid(`Param ${path}['type'] must be one of {HEADER, BODY, BUTTON}.`);
  }
  if (!isJsonArray(parameters)) return invalid(`Param ${path}['parameters'] must be an array.`);
  if (parameters.length === 0) return wrongNumber(type, 0, null);
  if (type !== "body" && parameters.length > 1) return wrongNumber(type, parameters.length, 1);
  if (type === "button") return buttonRefusal(component, parameters[0], path);
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

function buttonRefusal(button: JsonObject, parameter: Json | undefined, path: string): GraphRefusal | null {
  const index = String(button["index"] ?? "");
  if (!/^\d$/.test(index)) return invalid(`Param ${path}['index'] must be from 0 to 9.`);
  const expected = BUTTON_PARAMETERS[String(button["sub_type"]).toLowerCase()];
  if (expected === undefined) {
    return invalid(`Param ${path}['sub_type'] must be one of {QUICK_REPLY, URL, COPY_CODE, FLOW}.`);
  }
  const value = isJsonObject(parameter) && parameter["type"] === expected ? parameter[expected] : undefined;
  const isGiven = expected === "action" ? isJsonObject(value) : typeof value === "string" && value !== "";
  return isGiven ? null : missing(`buttons: Button at index ${index} requires a parameter of type ${expected}`);
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

function placeRefusal(place: Json | undefined, path: string): GraphRefusal | null {
  if (!isJsonObject(place)) return invalid(`Param ${path} must be a JSON object.`);
  const isPlace = [place["latitude"], place["longitude"]].every((one) => /^-?\d+(\.\d+)?$/.test(String(one ?? "")));
  return isPlace ? null : missing(`${path} requires latitude and longitude`);
}

function mediaRefusal(media: Json | undefined, path: string): GraphRefusal | null {
  if (!isJsonObject(media)) return invalid(`Param ${path} must be a JSON object.`);
  const { link, id }: JsonObject = media;
  if ((link === undefined) === (id === undefined))
    return invalid(`Param ${path} must have exactly one of link and id.`);
  const given = link ?? id;
  if (typeof given !== "string" || given === "") return invalid(`Param ${path} must be a string.`);
  return link !== undefined && !/^https?:\/\//.test(given) ? badValue(`${path}['link'] is not a valid URI.`) : null;
}

/** Templates with a button that copies a code need a number. */
function isOfAuthentication(template: Json | undefined): boolean {
  const components = isJsonObject(template) && isJsonArray(template["components"]) ? template["components"] : [];
  return components.some((one) => isJsonObject(one) && String(one["sub_type"]).toLowerCase() === "copy_code");
}

const NO_USER_ID: GraphRefusal = {
  status: 400,
  code: 131062,
  message: "Business-scoped User ID (BSUID) recipients are not supported for this message.",
};

function invalid(message: string): GraphRefusal {
  return { status: 400, code: 100, message };
}

function missing(details: string): GraphRefusal {
  return { status: 400, code: 131008, message: "Required parameter is missing", details };
}

function badValue(details: string): GraphRefusal {
  return { status: 400, code: 131009, message: "Parameter value is not valid", details };
}
