import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";

/** A template message in the form that the Graph API accepts. */
export interface TemplateRequest {
  readonly to: string;
  readonly template: string;
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
export function readTemplateRequest(body: string): TemplateRequest | GraphRefusal {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return invalid("The request body is not valid JSON.");
  }
  if (!isJsonObject(parsed)) return invalid("The request body must be an object.");
  const { messaging_product, recipient_type, to, type, template, biz_opaque_callback_data: opaque } = parsed;
  if (messaging_product !== "whatsapp") return invalid("The parameter messaging_product is required.");
  if (recipient_type !== undefined && recipient_type !== "individual") {
    return invalid('Param recipient_type must be one of {"INDIVIDUAL"}.');
  }
  if (typeof to !== "string" || to === "") return invalid("The parameter to is required.");
  if (!/^\+?\d{7,15}$/.test(to)) return badValue("Recipient phone number is not valid");
  if (type !== "template") return { status: 400, code: 131051, message: "Unsupported message type" };
  if (opaque !== undefined && (typeof opaque !== "string" || opaque.length > OPAQUE_CHARS_MAX)) {
    return badValue(`biz_opaque_callback_data must be a string of at most ${OPAQUE_CHARS_MAX} characters`);
  }
  const name = templateName(template);
  if (typeof name !== "string") return name;
  return { to: to.replace("+", ""), template: name, opaque: opaque ?? null };
}

const OPAQUE_CHARS_MAX = 512;
const NAME_CHARS_MAX = 512;
const BODY_CHARS_MAX = 1_024;

/** The name of the template if it is well-formed. */
function templateName(template: Json | undefined): string | GraphRefusal {
  if (!isJsonObject(template)) return missing("template is required");
  const { name, language, components } = template;
  if (typeof name !== "string" || name === "") return missing("template.name is required");
  if (name.length > NAME_CHARS_MAX) return badValue("template.name is too long");
  if (!isJsonObject(language) || typeof language["code"] !== "string" || language["code"] === "") {
    return missing("template.language.code is required");
  }
  if (components === undefined) return name;
  if (!Array.isArray(components)) return invalid("Param template['components'] must be an array.");
  for (const [index, component] of components.entries()) {
    const refusal = componentRefusal(component, `template['components'][${index}]`);
    if (refusal !== null) return refusal;
  }
  return name;
}

function componentRefusal(component: unknown, path: string): GraphRefusal | null {
  if (!isJsonObject(component)) return invalid(`Param ${path} must be a JSON object.`);
  const { type, parameters } = component;
  if (type !== "header" && type !== "body" && type !== "button") {
    return invalid(`Param ${path}['type'] must be one of {HEADER, BODY, BUTTON}.`);
  }
  if (!Array.isArray(parameters)) return invalid(`Param ${path}['parameters'] must be an array.`);
  if (parameters.length === 0) {
    const details = `${type}: number of localizable_params (0) does not match the expected number of params`;
    return { status: 400, code: 132000, message: "Number of parameters does not match", details };
  }
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
  if (type !== "image" && type !== "video" && type !== "document")
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
  return mediaRefusal(parameter[type], `${path}['${type}']`);
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

function invalid(message: string): GraphRefusal {
  return { status: 400, code: 100, message };
}

function missing(details: string): GraphRefusal {
  return { status: 400, code: 131008, message: "Required parameter is missing", details };
}

function badValue(details: string): GraphRefusal {
  return { status: 400, code: 131009, message: "Parameter value is not valid", details };
}
